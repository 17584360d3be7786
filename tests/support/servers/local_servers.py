"""Servers on this machine that do everything wrong that a probed server may do, and probes of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.support.open_files import open_files
from workers.podhttp.pod_network import Dialer, DialError, PodNetwork
from workers.prober.attempt import attempt
from workers.prober.outcome import ProbeOutcome, ProbeTarget

LOOPBACK: Final = "127.0.0.1"
NO_HOSTS: Final = ("é..x", ".", "x" * 64, "é" * 60, "x." * 128, "localhost\0.x", "fe80::1%é..x", "\ud800")
"""Nothing that can be looked up."""
EXPIRED: Final = Path(__file__).with_name("expired.pem")
"""A key and its certificate, of which the last day is over."""
SETTLE_DEADLINE_S: Final = 30.0

Run = Callable[[Coroutine[Any, Any, None]], None]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LocalDialer:
    """Makes plain sockets, and keeps in mind for whom."""

    def __init__(self) -> None:
        self.asked: list[PodNetwork] = []

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        self.asked.append(network)
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        return made


class NoDialer(LocalDialer):
    """Never comes to it."""

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        await asyncio.Event().wait()
        raise AssertionError


class DeadDialer(LocalDialer):
    """Is away."""

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        raise DialError("no dialer")


def unused_port(kind: socket.SocketKind = socket.SOCK_STREAM, address: str = LOOPBACK) -> int:
    """A port of the host that is free at this moment. An empty address is all of them."""
    with socket.socket(socket.AF_INET, kind) as briefly:
        briefly.bind((address, 0))
        port: int = briefly.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def serving(handler: Handler, host: str = LOOPBACK, tls: bool | ssl.SSLContext = False) -> AsyncIterator[int]:
    """The port on which connections are handled so. At the end nothing of them is left."""
    async with handling(handler, host=host, port=0, ssl=server_context() if tls is True else tls or None) as server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def handling(handler: Handler, **where: Any) -> AsyncIterator[asyncio.Server]:
    """A server with what asyncio.start_server takes."""
    tasks: set[asyncio.Task[None]] = set()
    transports: set[asyncio.WriteTransport] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        if writer.get_extra_info("ssl_object") is None:  # TLS takes no abort after a close
            transports.add(writer.transport)
        try:
            await handler(reader, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the prober has gone, or the test
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, **where)
    try:
        yield server
    finally:
        await _turns()
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in transports:
            transport.abort()
        await _turns()


async def _turns() -> None:
    """Work that is begun begins, what is closed closes: an accepted connection takes four."""
    for _ in range(10):
        await asyncio.sleep(0)


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(EXPIRED)
    return context


def http(port: int | str, timeout_s: int = 1, **more: Any) -> Probe:
    return Probe(http_get=HTTPGetAction(port=port, **more), timeout_seconds=timeout_s)


def tcp(port: int | str, timeout_s: int = 1, **more: Any) -> Probe:
    return Probe(tcp_socket=TCPSocketAction(port=port, **more), timeout_seconds=timeout_s)


def grpc(port: int, timeout_s: int = 1, service: str | None = None) -> Probe:
    return Probe(grpc=GRPCAction(port=port, service=service), timeout_seconds=timeout_s)


def target(container: Container | None = None, ip: str = LOOPBACK) -> ProbeTarget:
    return ProbeTarget(container=container or Container(name="main"), container_id="id", network=PodNetwork(ip=ip))


async def probed(probe: Probe, whom: ProbeTarget | None = None, dialer: Dialer | None = None) -> ProbeOutcome:
    runtime = FakeRuntime(FakePodman(SystemClock()), "one")
    return await attempt(probe, whom or target(), dialer or LocalDialer(), runtime)


class Held(NamedTuple):
    """Things that this process holds."""

    files: int
    tasks: int
    threads: int


def held() -> Held:
    return Held(open_files(), len(asyncio.all_tasks()), threading.active_count())


@contextlib.asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Fails when after it more is held than before; closing takes a turn of the loop or two."""
    gc.collect()  # what earlier tests left to it
    before = held()

    def is_more() -> bool:
        """Idle threads of earlier tests may have gone meanwhile."""
        return any(now > then for now, then in zip(held(), before, strict=True))

    yield
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_DEADLINE_S):
            while is_more():  # noqa: ASYNC110 - the kernel's and the loop's doing
                await asyncio.sleep(0.01)
    assert not is_more(), f"{held()} is held, before it was {before}"


# Behaviour of servers


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """The head of the request."""
    return await reader.readuntil(b"\r\n\r\n")


def answering(*parts: bytes, pause_s: float = 0.0) -> Handler:
    """Reads the request, writes these bytes, and closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        writer.write_eof() if writer.can_write_eof() else writer.close()
        await reader.read()

    return handler


def response(body: bytes = b"ok", status: str = "200 OK", headers: Sequence[str] = ()) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def dribbling(data: bytes, period_s: float = 0.05) -> Handler:
    """A byte at a time."""
    return answering(*(bytes([byte]) for byte in data), pause_s=period_s)


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accepts, reads, and never answers."""
    await reader.read()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    _reset(writer)


def resetting_after(data: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.1)  # so that it arrives before the reset
        _reset(writer)

    return handler


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def endless(beginning: bytes, part: bytes) -> Handler:
    """Writes as fast as it is read."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(beginning)
        while True:
            writer.write(part)
            await writer.drain()

    return handler
