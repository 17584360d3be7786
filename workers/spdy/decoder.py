"""Frames out of bytes that come in any pieces. Keeps at most one control frame; data is passed on as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from workers.spdy.frames import (
    CONTROL,
    FIN,
    FLAGS_SHIFT,
    HEAD,
    MAX_ID,
    MAX_LENGTH,
    SYN_STREAM_BYTES,
    UNIDIRECTIONAL,
    VERSION,
    WORD_BYTES,
    Data,
    Frame,
    FrameError,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    Type,
    Window,
)
from workers.spdy.header_blocks import HeaderReader

MAX_CONTROL_BYTES: Final = 16 * 1024
"""Longest payload of a control frame."""

_SIZES: Final[Mapping[int, tuple[int, int]]] = {
    Type.SYN_STREAM: (SYN_STREAM_BYTES, MAX_CONTROL_BYTES),
    Type.SYN_REPLY: (WORD_BYTES, MAX_CONTROL_BYTES),
    Type.HEADERS: (WORD_BYTES, MAX_CONTROL_BYTES),
    Type.SETTINGS: (4, MAX_CONTROL_BYTES),
    Type.RST_STREAM: (8, 8),
    Type.PING: (4, 4),
    Type.GOAWAY: (8, 8),
    Type.WINDOW_UPDATE: (8, 8),
}
"""Shortest and longest payload."""
_TYPE: Final = 0xFFFF
_VERSION: Final = 0x7FFF
"""Masks of a control frame's first word, the second one when its high half is shifted down."""

_Parser = Callable[[bytes, int, HeaderReader], Frame]


class FrameDecoder:
    """One direction of a connection."""

    def __init__(self) -> None:
        self._headers = HeaderReader()
        self._head = b""
        """Bytes of a head that is not complete."""
        self._current: tuple[int, int] | None = None
        """The head of the frame that comes: its first word, its flags."""
        self._left = 0
        """Bytes of its payload that have not come yet."""
        self._payload = bytearray()
        """Bytes of a control frame's payload that have come."""

    def frames(self, data: bytes) -> Iterator[Frame]:
        """Frames that these bytes complete, and pieces of data. Raises FrameError: the decoder is of no use then."""
        at = 0
        while at < len(data):
            if self._current is None:
                taken = data[at : at + HEAD.size - len(self._head)]
                self._head += taken
                at += len(taken)
                if len(self._head) == HEAD.size:
                    self._begin()
            else:
                taken = data[at : at + self._left]
                at += len(taken)
                self._left -= len(taken)
                yield from self._take(self._current[0], taken)
            if self._current is not None and not self._left:
                yield from self._complete(*self._current)

    def _begin(self) -> None:
        first, rest = HEAD.unpack(self._head)
        self._head, self._current, self._left = b"", (first, rest >> FLAGS_SHIFT), rest & MAX_LENGTH
        if not first & CONTROL:
            _not_zero(first)
            return
        version, type = first >> 16 & _VERSION, first & _TYPE
        if version != VERSION:
            raise FrameError(f"a frame of version {version}, not {VERSION}")
        least, most = _SIZES.get(type, (0, MAX_CONTROL_BYTES))
        if not least <= self._left <= most:
            raise FrameError(f"a control frame of type {type} with {self._left} bytes")

    def _take(self, first: int, taken: bytes) -> Iterator[Frame]:
        if first & CONTROL:
            self._payload += taken
        else:
            yield Data(first, taken)

    def _complete(self, first: int, flags: int) -> Iterator[Frame]:
        """The whole payload has come; of a data frame it was passed on."""
        self._current = None
        payload = bytes(self._payload)
        self._payload.clear()
        if first & CONTROL:
            parse = _PARSERS.get(first & _TYPE)
            if parse is not None:
                yield parse(payload, flags, self._headers)
        elif flags & FIN:
            yield Data(first, fin=True)


def _stream(payload: bytes) -> int:
    """Number of the stream, which stands first. Raises FrameError for 0."""
    return _not_zero(_first(payload) & MAX_ID)


def _not_zero(stream: int) -> int:
    if not stream:
        raise FrameError("a frame of stream 0")
    return stream


def _syn_stream(payload: bytes, flags: int, headers: HeaderReader) -> Frame:
    read = headers.read(payload[SYN_STREAM_BYTES:])
    return SynStream(_stream(payload), read, bool(flags & FIN), bool(flags & UNIDIRECTIONAL))


def _with_headers(frame: type[SynReply | MoreHeaders]) -> _Parser:
    return lambda payload, flags, headers: frame(
        _stream(payload), headers.read(payload[WORD_BYTES:]), bool(flags & FIN)
    )


def _first(payload: bytes) -> int:
    return int.from_bytes(payload[:WORD_BYTES], "big")


def _second(payload: bytes) -> int:
    return int.from_bytes(payload[WORD_BYTES : 2 * WORD_BYTES], "big")


_PARSERS: Final[Mapping[int, _Parser]] = {
    Type.SYN_STREAM: _syn_stream,
    Type.SYN_REPLY: _with_headers(SynReply),
    Type.HEADERS: _with_headers(MoreHeaders),
    Type.SETTINGS: lambda *_: Settings(),
    Type.RST_STREAM: lambda payload, *_: RstStream(_stream(payload), _second(payload)),
    Type.PING: lambda payload, *_: Ping(_first(payload)),
    Type.GOAWAY: lambda payload, *_: GoAway(_first(payload) & MAX_ID, _second(payload)),
    Type.WINDOW_UPDATE: lambda payload, *_: Window(_first(payload) & MAX_ID, _second(payload)),
}
