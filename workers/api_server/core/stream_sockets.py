"""Connections of exec, attach and port-forward: how they are opened and closed, and what ends them early."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, Protocol

from aiohttp import hdrs, web

from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.eventloop.tasks import first_of
from ipc.link.wire.stream_channels import (
    GOING_AWAY,
    MAX_MESSAGE_BYTES,
    OK,
    SUCCESS,
    Channel,
    ChannelSocket,
    Message,
    StreamStatus,
    encode_status,
)
from workers.api_server.core.base64_socket import Base64Socket
from workers.api_server.core.byte_streams import ByteStream, MessageBytes, TakenOver
from workers.api_server.core.frame_guard import FrameGuard
from workers.api_server.core.spdy_session import IDLE_TIMEOUT_S, SpdySession
from workers.api_server.core.status_errors import bad_request
from workers.api_server.core.upgrades import (
    BASE64_PROTOCOLS,
    PROTOCOL_HEADER,
    SPDY_UPGRADE,
    STATUS_PROTOCOLS,
    UNNAMED,
    Carrier,
    Upgrade,
)

PING_PERIOD_S: Final = 5.0
"""How often a client is looked for that has gone while nothing of it was read. It need not answer: a stream may be idle
for ever, and one whose input nobody reads cannot."""
CLOSE_TIMEOUT_S: Final = 2.0
"""How long a client may take to close its side at the end."""
SOCKET_BUFFER_BYTES: Final = 64 * 1024
TOO_EARLY: Final = "unable to upgrade: something was sent before the protocol was changed"
SWITCHING_PROTOCOLS: Final = 101


class Ended(enum.Enum):
    """The side that ended a stream first."""

    FINISHED = enum.auto()
    """All was sent."""
    CLIENT_GONE = enum.auto()
    STOPPING = enum.auto()
    """The API server stops."""


STOPPING_WORDS: Final = "the agent's API server stops"


def _guard(request: web.Request) -> tuple[FrameGuard, asyncio.Transport]:
    if request.transport is None:
        raise bad_request("unable to upgrade: the client has gone")
    guard = request.transport.get_protocol()
    if not isinstance(guard, FrameGuard):
        raise TypeError(f"nothing looks at the frames of {type(guard).__name__}")
    return guard, request.transport


def _begin_frames(request: web.Request) -> None:
    """Raises ApiError 400 when the client has not waited for the answer: of what it sent nobody knows the masks."""
    guard, _ = _guard(request)
    if not guard.begin_frames():
        raise bad_request(TOO_EARLY)


def _take_over(request: web.Request) -> TakenOver:
    """Raises ApiError 400 as `_begin_frames` does."""
    guard, transport = _guard(request)
    taken = guard.take_over(transport)
    if taken is None:
        raise bad_request(TOO_EARLY)
    return taken


Carried = tuple[ByteStream, web.StreamResponse]


def ending(protocol: str, status: StreamStatus) -> bytes:
    """Text of the end for a client of that protocol; empty for nothing."""
    if protocol in STATUS_PROTOCOLS:
        return encode_status(status)
    return b"" if status.status == SUCCESS else status.message.encode()


class Pinged(Protocol):
    """A client that is looked for."""

    async def ping(self) -> None:
        """Raises ConnectionError when the client is gone, or has been idle for too long."""

    def going_away(self) -> None:
        """The end will come because the API server stops."""


class Channels(Pinged, Protocol):
    """Streams to one client, by their numbers, whatever carries them. Sending raises ConnectionError when the client
    is gone."""

    @property
    def response(self) -> web.StreamResponse:
        """The answer that was given; a handler returns it."""

    @property
    def half_closes(self) -> bool:
        """Whether the client can end one channel while the others go on."""

    async def ready(self) -> bool:
        """Wait for all channels. False when the client does not open them in time, or is gone."""

    async def send(self, channel: int, data: bytes) -> None: ...

    async def end(self, channel: int) -> None:
        """Nothing more will be sent there."""

    async def receive(self) -> Message | None:
        """None when the client is gone."""

    async def say(self, status: StreamStatus) -> None:
        """Tell how it ended; the last that is sent."""


class StreamSocket(ChannelSocket):
    """Channels of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, idle_timeout_s: float) -> None:
        protocol = socket.ws_protocol or UNNAMED
        super().__init__(Base64Socket(socket) if protocol in BASE64_PROTOCOLS else socket, protocol)
        self._protocol = protocol
        self.response: web.StreamResponse = socket
        self.close_code = OK
        self._idle_timeout_s = idle_timeout_s
        self._moved_at = loop_time()
        """When something went over it last, either way."""

    async def send(self, channel: int, data: bytes) -> None:
        await super().send(channel, data)
        self._moved_at = loop_time()

    async def receive(self) -> Message | None:
        message = await super().receive()
        self._moved_at = loop_time()
        return message

    async def ping(self) -> None:
        if loop_time() - self._moved_at > self._idle_timeout_s:
            raise ConnectionResetError(f"nothing went over the stream for {self._idle_timeout_s:g} s")
        await super().ping()

    async def ready(self) -> bool:
        return True

    async def say(self, status: StreamStatus) -> None:
        if text := ending(self._protocol, status):
            await self.send(Channel.ERROR, text)

    def going_away(self) -> None:
        self.close_code = GOING_AWAY


async def _opened(request: web.Request, protocol: str) -> web.WebSocketResponse:
    _begin_frames(request)
    response = web.WebSocketResponse(
        timeout=CLOSE_TIMEOUT_S,
        protocols=(protocol,) if protocol else (),
        compress=False,
        max_msg_size=MAX_MESSAGE_BYTES,
        writer_limit=SOCKET_BUFFER_BYTES,
    )
    await response.prepare(request)
    return response


@contextlib.asynccontextmanager
async def _in_websocket(request: web.Request, protocol: str) -> AsyncIterator[Carried]:
    _, transport = _guard(request)
    response = await _opened(request, protocol)
    try:
        yield MessageBytes(response, transport), response
    finally:
        await response.close()


@contextlib.asynccontextmanager
async def _on_connection(request: web.Request, protocol: str) -> AsyncIterator[Carried]:
    stream = _take_over(request)
    headers = {hdrs.CONNECTION: "Upgrade", hdrs.UPGRADE: SPDY_UPGRADE, PROTOCOL_HEADER: protocol}
    response = web.StreamResponse(status=SWITCHING_PROTOCOLS, headers=headers)
    response.force_close()
    await response.prepare(request)
    yield stream, response


_CARRIERS: Final = {Carrier.SPDY: _on_connection, Carrier.SPDY_IN_WEBSOCKET: _in_websocket}


class StreamSockets:
    """The open stream sockets of one API server."""

    def __init__(self, ping_period_s: float = PING_PERIOD_S, idle_timeout_s: float = IDLE_TIMEOUT_S) -> None:
        """A stream over which nothing goes for ``idle_timeout_s`` is ended (KubeletConfiguration,
        streamingConnectionIdleTimeout)."""
        self._ping_period_s = ping_period_s
        self._idle_timeout_s = idle_timeout_s
        self._stopping = asyncio.Event()

    async def stop(self, _app: web.Application) -> None:
        """Every stream ends, with a word to its client."""
        self._stopping.set()

    @contextlib.asynccontextmanager
    async def websocket(self, request: web.Request, protocol: str) -> AsyncIterator[StreamSocket]:
        """The client's WebSocket; closed at the end, unless its client was quicker. Raises ApiError 400."""
        response = await _opened(request, protocol)
        socket = StreamSocket(response, self._idle_timeout_s)
        try:
            yield socket
        finally:
            await response.close(code=socket.close_code)

    @contextlib.asynccontextmanager
    async def spdy(self, request: web.Request, upgrade: Upgrade, max_streams: int) -> AsyncIterator[SpdySession]:
        """The client's SPDY connection, closed at the end. Raises ApiError 400."""
        async with _CARRIERS[upgrade.carrier](request, upgrade.protocol) as (stream, response):
            session = SpdySession(stream, response, max_streams, self._idle_timeout_s)
            try:
                yield session
            finally:
                await session.close(CLOSE_TIMEOUT_S)

    async def first_end(self, channels: Pinged, *streams: Coroutine[Any, Any, Ended]) -> Ended:
        """Run both ways of a stream until one of them says that it has ended, the client is gone, or we stop."""
        ended = await first_of(*streams, self._until_gone(channels), self._until_stopping())
        if ended is Ended.STOPPING:
            channels.going_away()
        return ended

    async def _until_gone(self, channels: Pinged) -> Ended:
        while True:
            await asyncio.sleep(self._ping_period_s)
            try:
                await channels.ping()
            except ConnectionError:
                return Ended.CLIENT_GONE

    async def _until_stopping(self) -> Ended:
        await self._stopping.wait()
        return Ended.STOPPING
