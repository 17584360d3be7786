"""The streams of one connection, and the frames that go and come on them.

As moby/spdystream (connection.go), which Kubernetes uses at both ends: windows are not kept, so that neither side waits
for the other to widen one, and frames of streams that are over are dropped without a word. What it takes and the
protocol forbids (numbers that do not rise, or are of the wrong parity) breaks the connection here, as the protocol has
it; a header block, a control frame and the number of open streams have limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from workers.spdy.decoder import FrameDecoder
from workers.spdy.frames import (
    Data,
    Frame,
    FrameError,
    GoAway,
    GoAwayStatus,
    MoreHeaders,
    Pairs,
    Ping,
    ResetStatus,
    RstStream,
    SynReply,
    SynStream,
    encode,
)
from workers.spdy.header_blocks import HeaderWriter

DEFAULT_MAX_STREAMS: Final = 100


class Broken(msgspec.Struct, frozen=True):
    """The other side does not keep to the protocol: the last event. A GOAWAY that says so is among the answers."""

    reason: str


Event = SynStream | SynReply | Data | RstStream | Ping | GoAway | Broken


class StreamClosedError(ConnectionError):
    """The stream is over, or our side of it."""


class _Stream:
    def __init__(self, *, ours: bool, theirs: bool) -> None:
        self.ours_open = ours
        self.theirs_open = theirs


class Connection:
    """One end. ``receive`` gives events for its user, the other methods bytes for its peer, in that order."""

    def __init__(self, *, client: bool = False, max_streams: int = DEFAULT_MAX_STREAMS) -> None:
        """``max_streams`` of the other side's may be open at once: more are refused."""
        self._decoder = FrameDecoder()
        self._headers = HeaderWriter()
        self._streams: dict[int, _Stream] = {}
        self._max_streams = max_streams
        self._parity = 1 if client else 0
        """Parity of our own numbers."""
        self._next_stream = 1 if client else 2
        self._next_ping = self._parity
        self._last_stream = 0
        """The other side's newest."""
        self._answers = bytearray()
        self._is_leaving = False
        self._is_broken = False

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def theirs_is_open(self, stream: int) -> bool:
        """Whether the other side may still send on it."""
        return stream in self._streams and self._streams[stream].theirs_open

    # --- what comes ---

    def receive(self, data: bytes) -> Iterator[Event]:
        """Events of these bytes; none after `Broken`. Answers that nobody has to decide on are kept for ``answers``."""
        if self._is_broken:
            return
        try:
            for frame in self._decoder.frames(data):
                yield from self._take(frame)
        except FrameError as error:
            self._is_broken = True
            self._answers += self.leave(GoAwayStatus.PROTOCOL_ERROR)
            yield Broken(str(error))

    def answers(self) -> bytes:
        """Bytes that are to be sent because of what was received."""
        made = bytes(self._answers)
        self._answers.clear()
        return made

    def _take(self, frame: Frame) -> Iterator[Event]:
        match frame:
            case SynStream():
                yield from self._opened(frame)
            case SynReply():
                if frame.stream in self._streams and frame.stream % 2 == self._parity:
                    yield frame
                    yield from self._ended(frame.stream, frame.fin)
            case MoreHeaders():
                yield from self._ended(frame.stream, frame.fin)
            case Data():
                if self.theirs_is_open(frame.stream) and not frame.fin:
                    yield frame
                yield from self._ended(frame.stream, frame.fin)
            case RstStream():
                if self._streams.pop(frame.stream, None) is not None:
                    yield frame
            case Ping():
                if frame.id % 2 != self._parity:
                    self._answers += self._encoded(frame)
                    yield frame
            case GoAway():
                yield frame

    def _opened(self, frame: SynStream) -> Iterator[Event]:
        if frame.stream % 2 == self._parity or frame.stream <= self._last_stream:
            raise FrameError(f"stream {frame.stream} after stream {self._last_stream}")
        self._last_stream = frame.stream
        if self._is_leaving:
            return
        if len(self._streams) >= self._max_streams:
            self._answers += self._encoded(RstStream(frame.stream, ResetStatus.REFUSED_STREAM))
            return
        self._streams[frame.stream] = _Stream(ours=not frame.unidirectional, theirs=True)
        yield frame
        yield from self._ended(frame.stream, frame.fin)

    def _ended(self, stream: int, fin: bool) -> Iterator[Event]:
        found = self._streams.get(stream)
        if fin and found is not None and found.theirs_open:
            found.theirs_open = False
            self._forget_if_over(stream)
            yield Data(stream, fin=True)

    # --- what goes ---

    def open(self, headers: Pairs, *, fin: bool = False) -> tuple[int, bytes]:
        """A stream of our own: its number, and the frame."""
        stream = self._next_stream
        self._next_stream += 2
        self._streams[stream] = _Stream(ours=not fin, theirs=True)
        return stream, self._encoded(SynStream(stream, headers, fin))

    def reply(self, stream: int) -> bytes:
        """Consent to a stream of the other side's; nothing when that has reset it meanwhile."""
        return self._encoded(SynReply(stream)) if stream in self._streams else b""

    def data(self, stream: int, data: bytes, *, fin: bool = False) -> bytes:
        """One frame of at most MAX_LENGTH bytes. Raises StreamClosedError."""
        found = self._streams.get(stream)
        if found is None or not found.ours_open:
            raise StreamClosedError(f"stream {stream} is closed")
        if fin:
            found.ours_open = False
            self._forget_if_over(stream)
        return self._encoded(Data(stream, data, fin))

    def reset(self, stream: int, status: ResetStatus = ResetStatus.CANCEL) -> bytes:
        """End a stream at once; nothing when it is over."""
        return self._encoded(RstStream(stream, status)) if self._streams.pop(stream, None) is not None else b""

    def ping(self) -> bytes:
        """A question; its answer is no event."""
        self._next_ping += 2
        return self._encoded(Ping(self._next_ping))

    def leave(self, status: GoAwayStatus = GoAwayStatus.OK) -> bytes:
        """Take no more streams."""
        self._is_leaving = True
        return self._encoded(GoAway(self._last_stream, status))

    def _forget_if_over(self, stream: int) -> None:
        found = self._streams[stream]
        if not (found.ours_open or found.theirs_open):
            del self._streams[stream]

    def _encoded(self, frame: Frame) -> bytes:
        return encode(frame, self._headers.compressed)
