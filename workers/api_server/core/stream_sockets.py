"""WebSockets of exec, attach and port-forward: how they are opened and closed, and what ends them early."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from aiohttp import hdrs, web

from ipc.host.tasks import first_of
from ipc.wire.stream_channels import GOING_AWAY, MAX_MESSAGE_BYTES, OK, PROTOCOLS, ChannelSocket
from workers.api_server.core.frame_guard import FrameGuard
from workers.api_server.core.status_errors import bad_request

PING_PERIOD_S: Final = 5.0
"""How often a client is looked for that has gone while nothing of it was read. It need not answer: a stream may be idle
for ever, and one whose input nobody reads cannot."""
CLOSE_TIMEOUT_S: Final = 2.0
"""How long a client may take to close its side at the end."""
SOCKET_BUFFER_BYTES: Final = 64 * 1024


class Ended(enum.Enum):
    """The side that ended a stream first."""

    FINISHED = enum.auto()
    """All was sent."""
    CLIENT_GONE = enum.auto()
    STOPPING = enum.auto()
    """The API server stops."""


STOPPING_WORDS: Final = "the agent's API server stops"


def check_upgrade(request: web.Request) -> None:
    """Raises ApiError 400 unless the request wants a WebSocket that speaks one of the protocols."""
    if request.method != hdrs.METH_GET or request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        raise bad_request("Upgrade request required: to a WebSocket")
    offered = [word.strip() for word in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")]
    if not set(PROTOCOLS).intersection(offered):
        raise bad_request(
            f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server accepts"
            f" {list(PROTOCOLS)}"
        )


def _begin_frames(request: web.Request) -> None:
    """Raises ApiError 400 when the client has not waited for the answer: of what it sent nobody knows the masks."""
    if request.transport is None:
        raise bad_request("unable to upgrade: the client has gone")
    guard = request.transport.get_protocol()
    if not isinstance(guard, FrameGuard):
        raise TypeError(f"nothing looks at the frames of {type(guard).__name__}")
    if not guard.begin_frames():
        raise bad_request("unable to upgrade: frames were sent before the connection was a WebSocket")


class StreamSocket(ChannelSocket):
    """The server's end of one."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        super().__init__(socket, socket.ws_protocol or "")
        self.response = socket
        self.close_code = OK


class StreamSockets:
    """The open stream sockets of one API server."""

    def __init__(self, ping_period_s: float = PING_PERIOD_S) -> None:
        self._ping_period_s = ping_period_s
        self._stopping = asyncio.Event()

    async def stop(self, _app: web.Application) -> None:
        """Every stream ends, with a word to its client."""
        self._stopping.set()

    @contextlib.asynccontextmanager
    async def opened(self, request: web.Request) -> AsyncIterator[StreamSocket]:
        """The client's WebSocket; closed at the end, unless its client was quicker. Raises ApiError 400."""
        _begin_frames(request)
        response = web.WebSocketResponse(
            timeout=CLOSE_TIMEOUT_S,
            protocols=PROTOCOLS,
            compress=False,
            max_msg_size=MAX_MESSAGE_BYTES,
            writer_limit=SOCKET_BUFFER_BYTES,
        )
        await response.prepare(request)
        socket = StreamSocket(response)
        try:
            yield socket
        finally:
            await response.close(code=socket.close_code)

    async def first_end(self, socket: StreamSocket, *streams: Coroutine[Any, Any, Ended]) -> Ended:
        """Run both ways of a stream until one of them says that it has ended, the client is gone, or we stop."""
        ended = await first_of(*streams, self._until_gone(socket), self._until_stopping())
        if ended is Ended.STOPPING:
            socket.close_code = GOING_AWAY
        return ended

    async def _until_gone(self, socket: ChannelSocket) -> Ended:
        while True:
            await asyncio.sleep(self._ping_period_s)
            try:
                await socket.ping()
            except ConnectionError:
                return Ended.CLIENT_GONE

    async def _until_stopping(self) -> Ended:
        await self._stopping.wait()
        return Ended.STOPPING
