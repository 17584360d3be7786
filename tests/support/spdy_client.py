"""The far end of exec, attach and port-forward over SPDY, with the same core as ours in the client's part."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Final
from urllib.parse import urlencode

from tests.support.api_server import DEADLINE_S, Master
from workers.spdy.connection import Broken, Connection, Event
from workers.spdy.frames import Data, RstStream, SynReply

READ_BYTES: Final = 64 * 1024


class SpdyClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self.head = head
        """Status line and headers of the answer."""
        self.writer = writer
        self.connection = Connection(client=True)
        self.events: list[Event] = []
        """Events that have come and were not asked for."""
        self._reader = reader

    async def open(self, **headers: str) -> int:
        """A stream that the server has accepted. Raises ConnectionRefusedError."""
        stream = await self.request(**headers)
        if isinstance(await self.first(SynReply, RstStream, stream=stream), RstStream):
            raise ConnectionRefusedError(f"stream {stream} was refused")
        return stream

    async def request(self, **headers: str) -> int:
        stream, frame = self.connection.open(tuple(headers.items()))
        await self.write(frame)
        return stream

    async def send(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        await self.write(self.connection.data(stream, data, fin=fin))

    async def reset(self, stream: int) -> None:
        await self.write(self.connection.reset(stream))

    async def write(self, data: bytes) -> None:
        """Write whatever bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> bool:
        """Take in what has come next; False at the end."""
        async with asyncio.timeout(DEADLINE_S):
            data = await self._reader.read(READ_BYTES)
        self.events += self.connection.receive(data)
        assert not any(isinstance(event, Broken) for event in self.events), self.events
        self.writer.write(self.connection.answers())
        return bool(data)

    async def first(self, *kinds: type[Event], stream: int) -> Event:
        """The first event of these kinds about a stream."""
        while True:
            for event in self.events:
                if isinstance(event, kinds) and getattr(event, "stream", stream) == stream:
                    self.events.remove(event)
                    return event
            assert await self.read(), f"the connection ended before stream {stream}: {self.events}"

    async def data(self, stream: int, size: int) -> bytes:
        """At least so many bytes."""
        found = b""
        while len(found) < size:
            event = await self.first(Data, stream=stream)
            assert isinstance(event, Data)
            assert not event.fin, f"stream {stream} ended after {found!r}"
            found += event.data
        return found

    async def rest(self, stream: int) -> bytes:
        """Bytes that come until the stream's end."""
        found = []
        while isinstance(event := await self.first(Data, RstStream, stream=stream), Data) and not event.fin:
            found.append(event.data)
        return b"".join(found)

    async def until_end(self) -> None:
        """Read until the server closes the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.read():
                pass


def handshake(path: str, query: Iterable[tuple[str, str]], protocols: Iterable[str], method: str = "POST") -> bytes:
    """The request's bytes."""
    lines = [
        f"{method} {path}?{urlencode(list(query))} HTTP/1.1",
        "Host: rootlet",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        *(["Content-Length: 0"] if method == "POST" else []),
        *(f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols),
    ]
    return "\r\n".join((*lines, "\r\n")).encode()


@contextlib.asynccontextmanager
async def spdy_client(
    master: Master, path: str, query: Iterable[tuple[str, str]], protocols: Iterable[str], method: str = "POST"
) -> AsyncIterator[SpdyClient]:
    """A connection that has become one of SPDY."""
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    try:
        writer.write(handshake(path, query, protocols, method))
        async with asyncio.timeout(DEADLINE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 101 "), head
        yield SpdyClient(reader, writer, head)
    finally:
        writer.close()
