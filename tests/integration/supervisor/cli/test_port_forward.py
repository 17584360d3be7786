"""`rootlet port-forward` as a process, against a real API server; what listens is here instead of in a pod."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.integration.workers.api_server.test_port_forward import LocalDialer, web
from tests.support.api_server import DEADLINE_S, Master, api_server, eventually
from tests.support.cli import start

MANY: Final = 100


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    async with api_server(tmp_path, dialer=LocalDialer()) as started:
        started.ready(web())
        yield started


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """The port of somebody who sends back what comes, to its end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", backlog=MANY) as server:
        yield server.sockets[0].getsockname()[1]


class Forwarding:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def ask(self, data: bytes) -> bytes:
        """Send, end our side, and read to the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        writer.write_eof()
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await reader.read()
        finally:
            writer.close()

    async def end(self, signum: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code and complaints of the command."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signum)
        return await self.ended()

    async def ended(self) -> tuple[int, str]:
        async with asyncio.timeout(DEADLINE_S):
            _, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, err.decode()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.asynccontextmanager
async def forwarding(master: Master, remote: int) -> AsyncIterator[Forwarding]:
    process = await start(master, "port-forward", "web", "--address", "127.0.0.1", f":{remote}")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            words = (await process.stdout.readline()).decode().split()
        assert words[:2] == ["Forwarding", "from"]
        yield Forwarding(process, int(words[2].rpartition(":")[2]))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_more_at_once_than_the_agents_socket_has_room_for(master: Master, echo: int) -> None:
    async with forwarding(master, echo) as found:
        assert await found.ask(b"first") == b"first"
        before = found.descriptors()
        words = [b"word %d" % number for number in range(MANY)]
        assert await asyncio.gather(*map(found.ask, words)) == words
        await eventually(lambda: found.descriptors() <= before, "no descriptor is left")
        assert await found.end() == (0, "")


async def test_whoever_connects_may_go_at_any_time(master: Master, echo: int) -> None:
    async with forwarding(master, echo) as found:
        assert await found.ask(b"first") == b"first"  # its event loop has what it needs
        before = found.descriptors()
        for _ in range(10):
            _, writer = await asyncio.open_connection("127.0.0.1", found.port)
            writer.write(b"x")
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            writer.transport.abort()
        await eventually(lambda: found.descriptors() <= before, "no descriptor is left")
        assert await found.ask(b"still there") == b"still there"
        assert await found.end() == (0, "")


async def test_nobody_listens_in_the_pod(master: Master) -> None:
    with _free_port() as port:
        async with forwarding(master, port) as found:
            with pytest.raises(ConnectionResetError):
                await found.ask(b"x")
            code, err = await found.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert err == (
        f"error: an error occurred forwarding {found.port} -> {port}:"
        f" error forwarding port {port} to pod web: Connection refused\n"
    )


async def test_a_pod_that_goes(master: Master, echo: int) -> None:
    async with forwarding(master, echo) as found:
        assert await found.ask(b"x") == b"x"
        master.gone(2, "web")
        assert await found.ended() == (1, "error: lost connection to pod\n")


@contextlib.contextmanager
def _free_port() -> Iterator[int]:
    """Taken, so that nobody else gets it; nobody listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
