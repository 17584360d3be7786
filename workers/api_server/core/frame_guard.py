"""Stands between a connection and aiohttp: refuses WebSocket frames that a client has not masked, and takes over a
connection that is to be no more HTTP.

RFC 6455, 5.1: a server must close the connection then, with 1002 (protocol error). aiohttp's reader does not look. So
what a client sends goes through here first, on its way from the transport to aiohttp's protocol, and once the
connection is a WebSocket the heads of its frames are read: two bytes, an extended length, a mask.
"""

from __future__ import annotations

import asyncio
from typing import Final

from workers.api_server.core.byte_streams import TakenOver

HEAD_END: Final = b"\r\n\r\n"
"""End of a request's head; a WebSocket's request has no body."""
VIOLATION: Final = b"\x8f\x80\x00\x00\x00\x00"
"""A frame of an opcode that there is not, in place of the client's: aiohttp closes with 1002 over it."""
_HEAD_BYTES: Final = 2
_MASK_BYTES: Final = 4
_MAX_REST_BYTES: Final = 12
"""Bytes of a frame's head, behind its first two."""
_MASKED: Final = 0x80
_LENGTH: Final = 0x7F
_EXTENDED_BYTES: Final = {126: 2, 127: 8}
"""Bytes of the extended length, by the short length in its place."""


class Frames:
    """Follows the heads of frames in bytes that come in any pieces. Bounded: keeps no more than a head."""

    def __init__(self) -> None:
        self._held = b""
        """The first byte of a head, until the second one says whether there is a mask."""
        self._head = b""
        self._payload_bytes = 0
        """Bytes of the payload that are still to come."""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Return the bytes that may pass, and whether a frame without a mask follows them."""
        data, self._held, at = self._held + data, b"", 0
        while at < len(data):
            if self._payload_bytes:
                passed = min(self._payload_bytes, len(data) - at)
                self._payload_bytes -= passed
            elif self._head:
                passed = self._complete(data[at : at + _MAX_REST_BYTES])
            elif at + 1 == len(data):
                self._held = data[at:]
                return data[:at], False
            elif not data[at + 1] & _MASKED:
                return data[:at], True
            else:
                self._head, passed = data[at : at + _HEAD_BYTES], _HEAD_BYTES
            at += passed
        return data, False

    def _complete(self, data: bytes) -> int:
        """Take the rest of the head; how many bytes of these it was."""
        short = self._head[1] & _LENGTH
        extended = _EXTENDED_BYTES.get(short, 0)
        passed = min(_HEAD_BYTES + extended + _MASK_BYTES - len(self._head), len(data))
        self._head += data[:passed]
        if len(self._head) == _HEAD_BYTES + extended + _MASK_BYTES:
            length = self._head[_HEAD_BYTES : _HEAD_BYTES + extended]
            self._payload_bytes = int.from_bytes(length, "big") if extended else short
            self._head = b""
        return passed


class FrameGuard(asyncio.Protocol):
    """Between a connection and aiohttp's protocol for it."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        self._tail = b""
        """The last bytes that have come."""
        self._frames: Frames | None = None
        self._is_broken = False
        self._taken: TakenOver | None = None

    def take_over(self, transport: asyncio.Transport) -> TakenOver | None:
        """From now on nothing that comes is for aiohttp. None when the client has sent something before it could know:
        aiohttp has that."""
        if self._tail != HEAD_END:
            return None
        self._taken = TakenOver(transport)
        return self._taken

    def begin_frames(self) -> bool:
        """From now on there are frames. False when the client has sent some before it could know: nobody has looked at
        those."""
        self._frames = Frames()
        return self._tail == HEAD_END

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._taken is not None:
            self._taken.data_received(data)
            return
        if self._is_broken:
            return
        if self._frames is None:
            self._tail = (self._tail + data[-len(HEAD_END) :])[-len(HEAD_END) :]
        else:
            data, self._is_broken = self._frames.feed(data)
        if data:
            self._protocol.data_received(data)
        if self._is_broken:
            self._protocol.data_received(VIOLATION)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        if self._taken is not None:
            self._taken.connection_lost()
        self._protocol.connection_lost(error)

    def pause_writing(self) -> None:
        if self._taken is not None:
            self._taken.pause_writing()
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._taken is not None:
            self._taken.resume_writing()
        self._protocol.resume_writing()
