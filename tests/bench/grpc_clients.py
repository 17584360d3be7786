"""Clients for gRPC probes side by side: what each makes of a bad answer, and its CPU and memory.

    python -m tests.bench.grpc_clients [--probes 1000] [--rounds 3]

Ours (`workers.prober.grpc`) is measured beside grpclib and grpcio, which are not dependencies of Rootlet: install them
by hand to measure them (``pip install grpclib grpcio``); one that is absent is named and left out. All of them connect
to a server on this machine. grpcio makes its sockets itself and so cannot probe a pod's network; its figures are here
all the same.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import platform
import resource
import socket
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, Final

import psutil
import uvloop

import workers.main
from tests.bench.apart import apart
from tests.bench.bare_probes import serve
from tests.integration.workers.prober.test_grpc import QUICK, SILENT
from tests.servers.health_server import GRPC_HEAD, Server, speaking
from tests.servers.local_servers import LOOPBACK, grpc, probed, serving
from workers.podhttp.user_agents import PROBE_USER_AGENT

TIMEOUT_S: Final = 1
FLOOD_TIMEOUT_S: Final = 2
"""How long a message without end is read, in seconds."""
CHECK: Final = "/grpc.health.v1.Health/Check"
SHOWN_CHARS: Final = 110
KIB: Final = 1024
MESSAGE_BYTES: Final = 2**31 - 1
"""Length that the endless message claims to have."""

Say = Callable[[int, int], Awaitable[str]]
"""Probe that port within so many seconds; the words of the outcome."""


# Clients


async def by_ours(port: int, timeout_s: int) -> str:
    return (await probed(grpc(port, timeout_s))).output


async def by_grpclib(port: int, timeout_s: int) -> str:
    """One probe by grpclib, whose Channel takes an address only: the connected socket goes in by a private method.

    The user agent is its own: metadata with that name is refused.
    """
    from grpclib.client import Channel, UnaryUnaryMethod
    from grpclib.encoding.base import CodecBase

    class Bytes(CodecBase):  # type: ignore[misc, unused-ignore]
        __content_subtype__ = "proto"

        def encode(self, message: Any, message_type: Any) -> bytes:
            return bytes(message)

        def decode(self, data: bytes, message_type: Any) -> bytes:
            return data

    class SocketChannel(Channel):  # type: ignore[misc, unused-ignore]
        async def _create_connection(self) -> Any:
            loop = asyncio.get_running_loop()
            connected = await _connected(port)
            return (await loop.create_connection(self._protocol_factory, sock=connected))[1]

    try:
        async with SocketChannel(LOOPBACK, port, codec=Bytes()) as channel:
            check: Any = UnaryUnaryMethod(channel, CHECK, bytes, bytes)
            return repr(await check(b"", timeout=timeout_s))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def by_grpcio(port: int, timeout_s: int) -> str:
    import grpc.aio

    options = [("grpc.primary_user_agent", PROBE_USER_AGENT), ("grpc.max_receive_message_length", 10 * KIB)]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{port}", options=options) as channel:
        check: Any = channel.unary_unary(CHECK)
        try:
            return repr(await check(b"", timeout=timeout_s))
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"


CLIENTS: Final[Mapping[str, Say]] = {"ours": by_ours, "grpclib": by_grpclib, "grpcio": by_grpcio}


def installed() -> dict[str, Say]:
    found: dict[str, Say] = {"ours": by_ours}
    for name, module in (("grpclib", "grpclib"), ("grpcio", "grpc")):
        if importlib.util.find_spec(module) is None:
            print(f"{name} is not installed: left out")
        else:
            found[name] = CLIENTS[name]
    return found


async def _connected(port: int) -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, (LOOPBACK, port))
    return made


# Bad answers


async def answers(clients: Mapping[str, Say]) -> None:
    handlers = {name: fault.handler for name, fault in QUICK.items()} | SILENT
    for name, handler in handlers.items():
        print(f"a server that {name}:")
        for client, say in clients.items():
            async with serving(handler) as port:
                print(f"  {client:8} {await _bounded(say, port)}", flush=True)


async def _bounded(say: Say, port: int) -> str:
    try:
        async with asyncio.timeout(3 * TIMEOUT_S):
            return (await say(port, TIMEOUT_S))[:SHOWN_CHARS]
    except TimeoutError:
        return f"DID NOT END within {3 * TIMEOUT_S} s"


# CPU


def cpu_us(say: Say, port: int, probes: int) -> float:
    """CPU time of one probe, in a process of its own."""

    async def run() -> float:
        for _ in range(probes // 10):
            await say(port, 5)
        began = _cpu_s()
        for _ in range(probes):
            await say(port, 5)
        return 1e6 * (_cpu_s() - began) / probes

    return _in_a_child(run)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)  # every thread of the process
    return used.ru_utime + used.ru_stime


# Memory


def pss_kib(say: Say | None, port: int) -> float:
    """Memory of a process forked from one that has imported what every worker has, after one probe (or none)."""

    async def run() -> float:
        if say is not None:
            await say(port, 5)
        return psutil.Process().memory_full_info().pss / KIB

    return _in_a_child(run)


def flood_kib(say: Say) -> float:
    """By how much the largest resident set grows while a message without end is read."""

    async def run() -> float:
        async with _flooding() as port:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            await say(port, FLOOD_TIMEOUT_S)
            return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

    return _in_a_child(run)


@contextlib.asynccontextmanager
async def _flooding() -> AsyncIterator[int]:
    """A server, in a process of its own, that begins a huge message and sends as much of it as it may."""
    with socket.create_server((LOOPBACK, 0)) as listening, apart(lambda: _flood(listening)):
        yield listening.getsockname()[1]


async def _flood(listening: socket.socket) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _endless_message(reader, writer)

    server = await asyncio.start_server(handler, sock=listening)
    await server.serve_forever()


async def _endless_message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    streams: list[int] = []

    def begin(server: Server, stream: int, _message: bytes) -> None:
        server.send_headers(stream, GRPC_HEAD)
        server.send_data(stream, b"\0" + MESSAGE_BYTES.to_bytes(4, "big"))
        streams.append(stream)

    def more(server: Server) -> None:
        for stream in streams:
            while size := min(server.local_flow_control_window(stream), server.max_outbound_frame_size):
                server.send_data(stream, bytes(size))

    with contextlib.suppress(OSError):
        await speaking(begin, more=more)(reader, writer)


# Processes


def _in_a_child(run: Callable[[], Coroutine[Any, Any, float]]) -> float:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, str(uvloop.run(run())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return float(text)


@contextlib.contextmanager
def healthy_server() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as listening, apart(lambda: serve([], [listening])):
        yield listening.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.grpc_clients", description=__doc__)
    parser.add_argument("--probes", type=int, default=1000, help="probes of each client in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {workers.main.__name__} imported before the forks")
    clients = installed()
    with healthy_server() as port:
        bare = statistics.median(pss_kib(None, port) for _ in range(options.rounds))
        for name, say in clients.items():
            cpu = [cpu_us(say, port, options.probes) for _ in range(options.rounds)]
            pss = [pss_kib(say, port) - bare for _ in range(options.rounds)]
            flood = [flood_kib(say) for _ in range(options.rounds)]
            print(
                f"{name:8} CPU of a probe {_spread(cpu)} µs; one probe's memory {_spread(pss)} KiB PSS; "
                f"while a message without end is read for {FLOOD_TIMEOUT_S} s {_spread(flood)} KiB more",
                flush=True,
            )
    asyncio.run(answers(clients))


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


if __name__ == "__main__":
    main()
