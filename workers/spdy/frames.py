"""SPDY's frames as values, and their bytes (SPDY protocol draft 3.1, section 2.6; moby/spdystream spdy/types.go).

A control frame is ``1 version(15) type(16) flags(8) length(24)`` and its payload, a data frame ``0 stream(31) flags(8)
length(24)`` and its bytes.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

VERSION: Final = 3
HEAD: Final = struct.Struct(">II")
"""Head of every frame: version and type, or the stream; flags and length."""
CONTROL: Final = 0x80000000
MAX_ID: Final = 0x7FFFFFFF
"""Largest number of a stream."""
MAX_LENGTH: Final = 0xFFFFFF
"""Longest payload that a frame can state, in bytes."""
FLAGS_SHIFT: Final = 24
FIN: Final = 0x01
UNIDIRECTIONAL: Final = 0x02
"""Flag of SYN_STREAM: the other side has nothing to send on it."""

Pairs = tuple[tuple[str, str], ...]


class FrameError(Exception):
    """Bytes that are no frames, or headers that cannot be unpacked: nothing after them can be read."""


class Type(enum.IntEnum):
    """Types of control frames. Others are skipped."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetStatus(enum.IntEnum):
    """Reasons of RST_STREAM that are given here."""

    PROTOCOL_ERROR = 1
    REFUSED_STREAM = 3
    CANCEL = 5


class GoAwayStatus(enum.IntEnum):
    """Reasons of GOAWAY that are given here."""

    OK = 0
    PROTOCOL_ERROR = 1


class SynStream(msgspec.Struct, frozen=True):
    """A new stream."""

    stream: int
    headers: Pairs = ()
    fin: bool = False
    unidirectional: bool = False

    def header(self, name: str) -> str:
        """Value of a header; empty when there is none."""
        return dict(self.headers).get(name, "")


class SynReply(msgspec.Struct, frozen=True):
    """Consent to a stream."""

    stream: int
    headers: Pairs = ()
    fin: bool = False


class MoreHeaders(msgspec.Struct, frozen=True):
    """HEADERS: headers that come later."""

    stream: int
    headers: Pairs = ()
    fin: bool = False


class Data(msgspec.Struct, frozen=True):
    """Bytes of a stream. A frame that comes in pieces is one of these for each piece."""

    stream: int
    data: bytes = b""
    fin: bool = False


class RstStream(msgspec.Struct, frozen=True):
    """The end of a stream both ways, at once."""

    stream: int
    status: int = ResetStatus.CANCEL


class Ping(msgspec.Struct, frozen=True):
    """A question, or the answer to one of the same number."""

    id: int


class GoAway(msgspec.Struct, frozen=True):
    """No more streams."""

    last_stream: int = 0
    status: int = GoAwayStatus.OK


class Window(msgspec.Struct, frozen=True):
    """WINDOW_UPDATE."""

    stream: int
    delta: int


class Settings(msgspec.Struct, frozen=True):
    """SETTINGS. Nothing that it can say changes anything here."""


Frame = SynStream | SynReply | MoreHeaders | Data | RstStream | Ping | GoAway | Window | Settings

_WORD: Final = struct.Struct(">I")
_TWO_WORDS: Final = struct.Struct(">II")
_SYN_STREAM: Final = struct.Struct(">IIBB")
"""Stream, the one that it belongs to, priority, slot."""
SYN_STREAM_BYTES: Final = _SYN_STREAM.size
WORD_BYTES: Final = _WORD.size

Compress = Callable[[Pairs], bytes]
_Encoder = Callable[[Any, Compress], bytes]


def _control(type: Type, payload: bytes, flags: int = 0) -> bytes:
    return HEAD.pack(CONTROL | VERSION << 16 | type, flags << FLAGS_SHIFT | len(payload)) + payload


def _syn_stream(frame: SynStream, compress: Compress) -> bytes:
    flags = frame.fin * FIN | frame.unidirectional * UNIDIRECTIONAL
    return _control(Type.SYN_STREAM, _SYN_STREAM.pack(frame.stream, 0, 0, 0) + compress(frame.headers), flags)


def _with_headers(type: Type) -> _Encoder:
    return lambda frame, compress: _control(type, _WORD.pack(frame.stream) + compress(frame.headers), frame.fin * FIN)


_ENCODERS: Final[Mapping[type[Any], _Encoder]] = {
    SynStream: _syn_stream,
    SynReply: _with_headers(Type.SYN_REPLY),
    MoreHeaders: _with_headers(Type.HEADERS),
    Data: lambda frame, _: HEAD.pack(frame.stream, frame.fin * FIN << FLAGS_SHIFT | len(frame.data)) + frame.data,
    RstStream: lambda frame, _: _control(Type.RST_STREAM, _TWO_WORDS.pack(frame.stream, frame.status)),
    Ping: lambda frame, _: _control(Type.PING, _WORD.pack(frame.id)),
    GoAway: lambda frame, _: _control(Type.GOAWAY, _TWO_WORDS.pack(frame.last_stream, frame.status)),
    Window: lambda frame, _: _control(Type.WINDOW_UPDATE, _TWO_WORDS.pack(frame.stream, frame.delta)),
    Settings: lambda frame, _: _control(Type.SETTINGS, _WORD.pack(0)),
}


def encode(frame: Frame, compress: Compress) -> bytes:
    """Bytes of a frame; ``compress`` makes its header block."""
    return _ENCODERS[type(frame)](frame, compress)
