"""Small API servers of a test's own, with TLS and without: they answer as they are told, and keep what was asked."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from tests.support.certificates import Authority

DEADLINE_S: Final = 30.0


class Asked(msgspec.Struct, frozen=True):
    """One request."""

    verb: str
    target: str
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes
    connection: int
    """Number of the connection, from 1 on."""


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


class SmallServer:
    """A small server: its address, and the requests that it had."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *rest = head.decode().split("\r\n")
                verb, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                asked = Asked(verb, target, headers, body, number)
                self.asked.append(asked)
                await self.answer(asked, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return  # the client has gone
        finally:
            self._writers.discard(writer)
            writer.close()

    def drop(self) -> None:
        """Break every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()


@contextlib.asynccontextmanager
async def small_server(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[SmallServer]:
    server = SmallServer(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    async with listening:
        yield server
        server.drop()
        listening.close()


def server_tls(authority: Authority, clients: Authority | None = None, name: str = "127.0.0.1") -> ssl.SSLContext:
    """TLS of a server that ``authority`` vouches for; with ``clients`` it wants certificates of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server(name))
    if clients is not None:
        context.load_verify_locations(clients.file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


OBJECT: Final = b'{"kind":"Pod"}'
"""The least that an API server answers with."""


def saying(status: str, body: bytes = OBJECT, *headers: str) -> bytes:
    """A whole answer."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


def always(*answers: bytes) -> Answer:
    """One answer after the other; the last one from then on."""
    left = list(answers)

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answer


STREAM: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Data as one chunk of a stream; the last one without data."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def replaced(path: Path, data: bytes) -> None:
    """Put a file in place of another, as projected tokens and rotated certificates are."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(data)
    temporary.replace(path)
