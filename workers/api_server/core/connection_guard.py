"""Bounds of one connection to a TCP port: how long and how large a request's head may be, how long nobody may come or
read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from workers.api_server.core.frame_guard import HEAD_END, FrameGuard

HEAD_TIMEOUT_S: Final = 10.0
"""How long a client may take for the first request's head."""
IDLE_TIMEOUT_S: Final = 60.0
"""How long it may take to read an answer and to come with its next request; nor may an answer wait longer for it to
read."""
MAX_HEAD_BYTES: Final = 64 * 1024
"""Largest head of a request."""
TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class ConnectionGuard(FrameGuard):
    """Between a transport and aiohttp's protocol, which has none of these bounds. `begin` and `end` are told by a
    middleware."""

    def __init__(self, protocol: asyncio.Protocol, on_lost: Callable[[], None]) -> None:
        super().__init__(protocol)
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._stall_timeout_s = IDLE_TIMEOUT_S
        self._has_answer = False
        """An answer is there that the client has to read."""
        self._head_bytes = 0
        """Bytes of the head that is coming in; -1 from its end to that of its answer."""

    def release(self) -> None:
        """The connection is over, or never was; a second call is harmless."""
        on_lost, self._on_lost = self._on_lost, _nothing
        on_lost()

    def begin(self, stall_timeout_s: float = IDLE_TIMEOUT_S) -> None:
        """A request is being answered; its client may leave bytes of ours unread for so long."""
        self._stall_timeout_s = stall_timeout_s
        self._has_answer = False
        self._set_timer(None)

    def end(self) -> None:
        """The answer is there, and has to be read."""
        self._head_bytes = 0
        self._has_answer = True
        self._stall_timeout_s = IDLE_TIMEOUT_S
        self._set_timer(IDLE_TIMEOUT_S)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses of it
        self._set_timer(HEAD_TIMEOUT_S)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._head_bytes >= 0 and not self._is_head_small(data):
            return
        super().data_received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._set_timer(None)
        self._forget_stall()
        self.release()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        self._stalled = asyncio.get_running_loop().call_later(self._stall_timeout_s, self._abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._forget_stall()
        if self._has_answer:
            self._set_timer(IDLE_TIMEOUT_S)  # The client reads, however large the answer is.
        super().resume_writing()

    def _is_head_small(self, data: bytes) -> bool:
        end = (self._tail + data).find(HEAD_END)
        self._head_bytes += len(data) if end < 0 else end + len(HEAD_END) - len(self._tail)
        if self._head_bytes > MAX_HEAD_BYTES:
            if self._transport is not None:
                self._transport.write(TOO_LARGE)
                self._transport.close()
            return False
        if end >= 0:
            self._head_bytes = -1
        return True

    def _set_timer(self, timeout_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if timeout_s is None else asyncio.get_running_loop().call_later(timeout_s, self._abort)

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _nothing() -> None:
    pass
