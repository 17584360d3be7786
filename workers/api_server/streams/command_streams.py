"""Channels of exec and attach as streams of a SPDY connection (cri-streaming pkg/streaming/remotecommand,
httpstream.go): the client opens one for each, and says in a header which it is.

The versions of the protocol differ in little: from v4 on the end is a v1 Status, before that the text of a failure or
nothing; from v3 on a terminal has a stream of sizes; in v1 the server ends its side of stdin, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

from aiohttp import web

from ipc.link.eventloop.tasks import BackgroundTasks, first_of
from ipc.link.wire.stream_channels import Channel, Message, StreamStatus
from workers.api_server.core.spdy_session import Inbox, Route, SpdySession
from workers.api_server.core.stream_sockets import Channels, StreamSockets, ending
from workers.api_server.core.upgrades import COMMAND_V1, COMMAND_V3, COMMAND_V4, Carrier, Upgrade
from workers.api_server.streams.stream_target import Streams
from workers.spdy.connection import StreamClosedError
from workers.spdy.frames import SynStream

CREATION_TIMEOUT_S: Final = 30.0
"""How long a client may take to open its streams (cri-streaming pkg/streaming, DefaultConfig StreamCreationTimeout)."""
MAX_STREAMS: Final = 8
"""At once; five have a meaning."""
STREAM_TYPE: Final = "streamtype"
MAX_SIZE_BYTES: Final = 1024
"""Longest text of a terminal's size."""

_BY_TYPE: Final[Mapping[str, Channel]] = {
    "stdin": Channel.STDIN,
    "stdout": Channel.STDOUT,
    "stderr": Channel.STDERR,
    "error": Channel.ERROR,
    "resize": Channel.RESIZE,
}
_WITH_SIZES: Final = frozenset((COMMAND_V4, COMMAND_V3))
_OUTPUT: Final = (Channel.STDOUT, Channel.STDERR)


@contextlib.asynccontextmanager
async def opened_channels(
    sockets: StreamSockets, request: web.Request, upgrade: Upgrade, streams: Streams
) -> AsyncIterator[Channels]:
    """Accept the client in the way that it wants; closed at the end. Raises ApiError 400."""
    if upgrade.carrier is Carrier.WEBSOCKET:
        async with sockets.websocket(request, upgrade.protocol) as socket:
            yield socket
        return
    async with sockets.spdy(request, upgrade, MAX_STREAMS) as session:
        channels, reading = CommandStreams(session, upgrade.protocol, streams), BackgroundTasks()
        reading.spawn(session.serve(channels), name="frames of a SPDY client")
        try:
            yield channels
        finally:
            await reading.close()


class CommandStreams:
    """`Channels` of one client; it reads nothing by itself, `SpdySession.serve` does."""

    half_closes: Final = True

    def __init__(self, session: SpdySession, protocol: str, streams: Streams) -> None:
        self.response = session.response
        self._session = session
        self._protocol = protocol
        self._wanted = _wanted(protocol, streams)
        self._ids: dict[int, int] = {}
        """The stream of each channel."""
        self._inbox = Inbox()
        self._complete = asyncio.Event()
        self._sizes = b""
        """Sizes of the terminal that came in, as far as one is not complete."""

    # --- as `Acceptor` ---

    def accept(self, opened: SynStream) -> Route | None:
        channel = _BY_TYPE.get(opened.header(STREAM_TYPE))
        if channel is None or channel not in self._wanted or channel in self._ids:
            return None
        self._ids[channel] = opened.stream
        return Route(self._inbox, channel)

    def replied(self, opened: SynStream) -> None:
        if self._wanted == self._ids.keys():
            self._complete.set()

    # --- as `Channels` ---

    async def ready(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CREATION_TIMEOUT_S):
                await first_of(self._complete.wait(), self._session.over.wait())
        if self._complete.is_set() and self._protocol == COMMAND_V1 and Channel.STDIN in self._ids:
            await self.end(Channel.STDIN)
        return self._complete.is_set()

    async def send(self, channel: int, data: bytes) -> None:
        """Dropped when the client has reset that stream, as upstream."""
        if channel in self._ids:
            with contextlib.suppress(StreamClosedError):
                await self._session.send(self._ids[channel], data)

    async def end(self, channel: int) -> None:
        if channel in self._ids:
            await self._session.end(self._ids[channel])

    async def receive(self) -> Message | None:
        """Input, and whole sizes however they were cut."""
        while (item := await self._inbox.get()) is not None:
            if item.channel == Channel.STDIN:
                return item if isinstance(item, Message) else Message(Channel.STDIN, ends=True)
            if item.channel == Channel.RESIZE and isinstance(item, Message) and (size := self._newest_size(item.data)):
                return Message(Channel.RESIZE, size)
        return None

    def _newest_size(self, data: bytes) -> bytes:
        """JSON of the last size that is complete; empty when none is."""
        complete, brace, rest = (self._sizes + data).rpartition(b"}")
        self._sizes = rest[:MAX_SIZE_BYTES]
        return complete.rpartition(b"}")[2] + brace if brace else b""

    async def ping(self) -> None:
        await self._session.ping()

    async def say(self, status: StreamStatus) -> None:
        for channel in _OUTPUT:
            await self.end(channel)
        if text := ending(self._protocol, status):
            await self.send(Channel.ERROR, text)
        for stream in self._ids.values():
            await self._session.finish(stream)

    def going_away(self) -> None:
        self._session.going_away()


def _wanted(protocol: str, streams: Streams) -> frozenset[Channel]:
    wanted = {
        Channel.ERROR: True,
        Channel.STDIN: streams.stdin,
        Channel.STDOUT: streams.stdout,
        Channel.STDERR: streams.stderr,
        Channel.RESIZE: streams.tty and protocol in _WITH_SIZES,
    }
    return frozenset(channel for channel, is_wanted in wanted.items() if is_wanted)
