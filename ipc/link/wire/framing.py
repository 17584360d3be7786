"""Frames of a link between two processes: length-prefixed, each one message. Pure: bytes in, bytes out.

A frame is a 4-byte big-endian length and that many bytes of payload. Both sides hold the same maximum: the sender
learns at once that a message is too large, and a receiver never waits for, or makes room for, a length that a broken
or hostile peer made up.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

import msgspec

from ipc.host.text.safe_text import safe_line

MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Largest payload of one frame, in bytes, unless a link says otherwise."""
HEADER_BYTES: Final = 4
"""Size of the length in front of each payload, in bytes."""
MAX_REASON_CHARS: Final = 256
"""Longest description of a protocol error, in characters: the peer chooses some of its words."""

_HEADER: Final = struct.Struct(">I")
_BROKEN_PAYLOAD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError)
"""Exceptions of decoding hostile bytes: UnicodeDecodeError for bad UTF-8, RecursionError for depth, MemoryError for an
array of far more elements than there is room for, MsgspecError for all else."""

R = TypeVar("R")


class ProtocolError(Exception):
    """The peer sent what no correct peer sends. Its text is printable and at most MAX_REASON_CHARS long."""

    def __init__(self, reason: str) -> None:
        super().__init__(safe_line(reason, MAX_REASON_CHARS))


class FrameError(ProtocolError):
    """The byte stream is broken; nothing after this point of it has a meaning."""

    def __init__(self, reason: str, frames: tuple[bytes, ...] = ()) -> None:
        super().__init__(reason)
        self.frames = frames
        """Whole frames that lay before the break in the same ``feed``; they are good."""


class FrameTooLarge(ValueError):
    """A message of our own exceeds the link's maximum. Nothing was sent; the link is as it was."""


def encode_frame(payload: bytes, max_frame_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """The payload with its length in front. Raises FrameTooLarge, or ValueError for an empty payload."""
    if not payload:
        raise ValueError("a frame cannot be empty")
    if len(payload) > max_frame_bytes:
        raise FrameTooLarge(f"message of {len(payload)} bytes exceeds the maximum of {max_frame_bytes} bytes")
    return _HEADER.pack(len(payload)) + payload


class FrameDecoder:
    """Cuts a byte stream into frames. Between calls it holds less than one maximal frame."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._broken = ""

    @property
    def buffered_bytes(self) -> int:
        """Size of the incomplete frame, header included, in bytes."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The payloads that ``data`` completes, in order.

        Raises FrameError on a length of zero or over the maximum, and from then on always.
        """
        self._refuse_if_broken()
        if self._buffer:
            self._buffer += data
            data = self._buffer
        frames: list[bytes] = []
        position, end = 0, len(data)
        while end - position >= HEADER_BYTES:
            (length,) = _HEADER.unpack_from(data, position)
            if not 0 < length <= self._max_frame_bytes:
                raise self._break(f"frame length {length} is not within 1..{self._max_frame_bytes} bytes", frames)
            start = position + HEADER_BYTES
            if end - start < length:
                break
            frames.append(bytes(data[start : start + length]))
            position = start + length
        if data is self._buffer:
            del self._buffer[:position]
        else:
            self._buffer += data[position:]
        return frames

    def eof(self) -> None:
        """The stream has ended. Raises FrameError when it ended inside a frame, or was broken before."""
        self._refuse_if_broken()
        if self._buffer:
            raise self._break(f"stream ended inside a frame, after {len(self._buffer)} bytes of it")

    def _break(self, reason: str, frames: list[bytes] | None = None) -> FrameError:
        self._broken = reason
        self._buffer = bytearray()
        return FrameError(reason, tuple(frames or ()))

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise FrameError(self._broken)


def decode_message(decoder: msgspec.msgpack.Decoder[R], payload: bytes) -> R:
    """One message of the decoder's type. Raises ProtocolError for anything that is not one."""
    try:
        return decoder.decode(payload)
    except _BROKEN_PAYLOAD as error:
        reason = f"{type(error).__name__}: {str(error)[:MAX_REASON_CHARS]}"
    # Raised outside the handler: the original's text can be as long as the frame and must not ride along.
    raise ProtocolError(f"undecodable message of {len(payload)} bytes: {reason}")
