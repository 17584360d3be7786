"""Connections that are taken over from aiohttp: with TLS and without, on the standard loop and on the agent's."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
import uvloop

from tests.support.api_server import DEADLINE_S
from workers.api_server.core.frame_guard import FrameGuard

HEAD: Final = b"POST / HTTP/1.1\r\n\r\n"
CHUNK: Final = os.urandom(64 * 1024)
TIMES: Final = 128
"""Chunks: more than all buffers on the way hold, so that each side waits for the other again and again."""
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate in one file."""
    path, certificate = tmp_path / "both.pem", tmp_path / "certificate.pem"
    words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test -keyout {path} -out {certificate}"
    subprocess.run(words.split(), check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + certificate.read_bytes())
    return path


class Taking(asyncio.Protocol):
    """In aiohttp's place: the connection is taken over with the first bytes, and echoes from then on."""

    def __init__(self) -> None:
        self.guard = FrameGuard(self)
        self.echoing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        assert data == HEAD, "a byte that was not for aiohttp"
        self.echoing = asyncio.ensure_future(self._echo())

    async def _echo(self) -> None:
        taken = self.guard.take_over(self._transport)
        assert taken is not None
        while data := await taken.read():
            await taken.write(data)
            assert self._transport.get_write_buffer_size() <= 1
        with pytest.raises(ConnectionError):
            await taken.write(b"late")


async def _echo_through(server_tls: ssl.SSLContext | None, client_tls: ssl.SSLContext | None) -> None:
    made: list[Taking] = []

    def accept() -> FrameGuard:
        made.append(Taking())
        return made[-1].guard

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0, ssl=server_tls)
    async with asyncio.timeout(DEADLINE_S):
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls)
        writer.write(HEAD)

        async def give() -> None:
            for _ in range(TIMES):
                writer.write(CHUNK)
                await writer.drain()

        async def take() -> bool:
            return all([await reader.readexactly(len(CHUNK)) == CHUNK for _ in range(TIMES)])

        # An answer of the server says that it is taken over: until then all bytes are aiohttp's.
        while not made or made[0].echoing is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        _, is_same = await asyncio.gather(give(), take())
        assert is_same
        writer.close()
        (taking,) = made
        assert taking.echoing is not None
        await taking.echoing
    server.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_all_bytes_go_both_ways(run: Run) -> None:
    run(_echo_through(None, None))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_all_bytes_go_both_ways_with_tls(run: Run, certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    run(_echo_through(server, client))
