"""One client's SPDY connection on a stream of bytes: whoever opens streams is told, and gets their data in an inbox.

Bounded both ways: what is sent waits for a client that does not read, and the client is not read while an inbox is
full, as moby/spdystream's queues have it. So all streams of a connection wait for one whose receiver takes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from aiohttp import web

from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.wire.stream_channels import Message
from workers.api_server.core.byte_streams import ByteStream
from workers.spdy.connection import Broken, Connection, Event, StreamClosedError
from workers.spdy.frames import Data, GoAway, RstStream, SynStream

IDLE_TIMEOUT_S: Final = 4 * 3600.0
"""After so long without a frame of the client's, and without data that it took, the connection ends
(KubeletConfiguration, streamingConnectionIdleTimeout). Answers to our own pings are no frames in this sense."""
INBOX_BYTES: Final = 64 * 1024
"""With so much in it an inbox is full."""
ITEM_BYTES: Final = 256
"""Counted for an item beside its data."""

log = logging.getLogger(__name__)


class StreamReset(msgspec.Struct, frozen=True):
    """The client has ended a stream at once, both ways."""

    channel: int


class Inbox:
    """Messages that were not taken yet."""

    def __init__(self) -> None:
        self._items: deque[Message | StreamReset] = deque()
        self._held_bytes = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def put(self, item: Message | StreamReset) -> None:
        """Into a closed one nothing goes."""
        if self._is_closed:
            return
        self._items.append(item)
        self._count(item, 1)
        self._filled.set()

    async def until_room(self) -> None:
        """Wait until it is not full, or closed."""
        await self._has_room.wait()

    async def get(self) -> Message | StreamReset | None:
        """None when it is closed and empty."""
        while not self._items:
            if self._is_closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        item = self._items.popleft()
        self._count(item, -1)
        return item

    def close(self) -> None:
        """Nothing comes any more; items that are there can still be taken."""
        self._is_closed = True
        self._filled.set()
        self._has_room.set()

    def _count(self, item: Message | StreamReset, sign: int) -> None:
        data = item.data if isinstance(item, Message) else b""
        self._held_bytes += sign * (len(data) + ITEM_BYTES)
        if self._is_closed or self._held_bytes < INBOX_BYTES:
            self._has_room.set()
        else:
            self._has_room.clear()


class Route(msgspec.Struct, frozen=True):
    """Where data of a stream goes."""

    inbox: Inbox
    channel: int


class Acceptor(Protocol):
    """The user of a session."""

    def accept(self, opened: SynStream) -> Route | None:
        """A client's new stream; None refuses it."""

    def replied(self, opened: SynStream) -> None:
        """The client knows that its stream was accepted; before that it drops what comes on it."""


class SpdySession:
    """The server's end."""

    def __init__(
        self,
        stream: ByteStream,
        response: web.StreamResponse,
        max_streams: int,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self.response = response
        """The answer that was given to the request."""
        self._bytes = stream
        self._connection = Connection(max_streams=max_streams)
        self._idle_timeout_s = idle_timeout_s
        self._active_at = loop_time()
        self._routes: dict[int, Route] = {}
        """The routes of all streams with which we are not done."""
        self._writing = asyncio.Lock()
        """One frame after the other: of those that nobody reads there is one at a time."""
        self.over = asyncio.Event()
        """The client is gone, or does not keep to the protocol."""

    async def serve(self, acceptor: Acceptor) -> None:
        """Read the client's frames until there are no more; then all inboxes are closed. One who is cancelled has only
        stopped to read."""
        is_over = True
        try:
            await self._read(acceptor)
        except ConnectionError:
            return  # The client went while it was answered.
        except asyncio.CancelledError:
            is_over = False
            raise
        finally:
            if is_over:
                self._end()

    async def _read(self, acceptor: Acceptor) -> None:
        is_last = False
        while not is_last and (data := await self._bytes.read()):
            for event in self._connection.receive(data):
                await self._take(event, acceptor)
                is_last = isinstance(event, GoAway | Broken)
            await self._write(self._connection.answers)

    async def _take(self, event: Event, acceptor: Acceptor) -> None:
        self._active_at = loop_time()
        match event:
            case SynStream():
                await self._open(event, acceptor)
            case Data(stream, data, fin):
                await self._deliver(stream, lambda channel: Message(channel, data, ends=fin))
            case RstStream(stream):
                await self._deliver(stream, StreamReset)
            case Broken(reason):
                log.info("a SPDY connection is closed: %s", reason)

    async def _open(self, opened: SynStream, acceptor: Acceptor) -> None:
        route = acceptor.accept(opened)
        if route is None:
            await self._write(lambda: self._connection.reset(opened.stream))
            return
        self._routes[opened.stream] = route
        await self._write(lambda: self._connection.reply(opened.stream))
        acceptor.replied(opened)

    async def _deliver(self, stream: int, item: Callable[[int], Message | StreamReset]) -> None:
        if (route := self._routes.get(stream)) is not None:
            route.inbox.put(item(route.channel))
            await route.inbox.until_room()

    async def send(self, stream: int, data: bytes) -> None:
        """Raises ConnectionError; `StreamClosedError`, which is one, when only the stream is over."""
        await self._write(lambda: self._connection.data(stream, data))
        self._active_at = loop_time()

    async def end(self, stream: int) -> None:
        """Nothing more is sent on it; harmless when that was so. Raises ConnectionError."""
        with contextlib.suppress(StreamClosedError):
            await self._write(lambda: self._connection.data(stream, b"", fin=True))

    async def finish(self, stream: int) -> None:
        """Be done with a stream; the client is told unless it has ended it itself. Raises ConnectionError."""
        self._routes.pop(stream, None)
        await self.end(stream)
        await self._write(lambda: self._connection.reset(stream))

    async def ping(self) -> None:
        """Raises ConnectionError when the client is gone or has been idle for too long, also while nothing of ours is
        read."""
        try:
            async with asyncio.timeout_at(self._active_at + self._idle_timeout_s):
                await self._write(self._connection.ping)
        except TimeoutError:
            raise ConnectionAbortedError("the client was idle for too long") from None

    def going_away(self) -> None:
        """A GOAWAY comes at the end in any case, and has no word for the reason."""

    async def close(self, timeout_s: float) -> None:
        """The end for the client, which has that time to take what was sent and to close its side. Nobody may read or
        write any more."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._bytes.write(self._connection.leave())
                while await self._bytes.read():
                    pass  # Unread bytes would break the connection off before the client has read all of ours.
        except (ConnectionError, TimeoutError):
            self._bytes.abort()
        finally:
            self._end()

    async def _write(self, frame: Callable[[], bytes]) -> None:
        """Frames are made when it is their turn: those with headers are understood in one order only."""
        async with self._writing:
            if self.over.is_set():
                raise ConnectionResetError("the client has gone")
            if data := frame():
                await self._bytes.write(data)

    def _end(self) -> None:
        self.over.set()
        for route in self._routes.values():
            route.inbox.close()
