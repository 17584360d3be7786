"""Spans of what each process of the agent does for a pod, in shared memory: for `rootlet load-test --trace`, and for
the export of traces (`workers/tracing`).

A mapping that all processes inherit, with a lane for each slot and one for the master. A lane has one writer, which
appends and then moves the lane's end: a writer that dies loses at most the span that it was writing, and its successor
goes on behind it. A full lane takes no more and counts what it has dropped, so a trace is bounded. Who starts a trace
gives it a number; a lane that carries another one is of an earlier trace and empty.

Off, a span costs one load of eight bytes, and untouched pages are no memory. Spans name pods by their UIDs, steps and
calls, and carry nothing of what goes through them.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Final

import msgspec

from ipc.host.clock import monotonic, thread_cpu
from ipc.host.text.safe_text import clipped

LANE_BYTES: Final = 2 * 1024 * 1024
"""Most that one process can tell in a trace, in bytes: some 25,000 spans."""
EXPORTED_LANE_BYTES: Final = LANE_BYTES // 8
"""A trace that is exported begins anew when a lane has so many bytes, so that it takes little memory and never ends."""
MAX_NAME_BYTES: Final = 96
"""Longest name of a span, and of a pod's UID, that is kept, in bytes of UTF-8."""
MAX_MARKS: Final = 10_000
"""Most spans of a process that were begun with `Tracer.begin` and not ended."""

_WORD: Final = 8
_GENERATION, _END, _DROPPED = range(3)
"""Words at the head of a lane."""
_HEAD_BYTES: Final = 64
_LENGTH: Final = struct.Struct("=I")
_NOWHERE: Final = ""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Something that one process did, or waited for. Times in monotonic seconds; an instant has the same twice."""

    name: str
    pod: str
    """UID; empty for what is done for no single pod."""
    begin: float
    end: float
    cpu_s: float
    """CPU time of the thread, in seconds; 0.0 where others run meanwhile."""
    process: str
    pid: int


class Trace(msgspec.Struct, frozen=True):
    """Content of all lanes."""

    spans: tuple[Span, ...]
    dropped: int
    """Spans for which there was no room."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Span)


class TraceBuffer:
    """The mapping. To be made before the processes that share it are forked."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._switch_map = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
        self.switch = self._switch_map[: 3 * _WORD].cast("Q")
        """The number of the trace under way, 0 when there is none; that of the newest; and 1 when it is exported."""
        self._mapping = mmap.mmap(-1, lanes * LANE_BYTES)
        self._memory = memoryview(self._mapping)

    def start(self) -> None:
        """Begin an empty trace, also in place of one that is exported. For the API server alone."""
        self._begin(is_exported=False)

    def stop(self) -> None:
        """End the trace that `start` has begun and give its memory back. For the API server alone."""
        if not self.switch[2]:
            self._end()

    def export(self) -> None:
        """See to it that a trace is under way: begin one to be exported unless there is one, and begin it anew when a
        lane of it has EXPORTED_LANE_BYTES. For the one process that exports."""
        if not self.switch[0] or (self.switch[2] and self._fullest() >= EXPORTED_LANE_BYTES):
            self._begin(is_exported=True)

    def stop_export(self) -> None:
        """End the trace that `export` has begun."""
        if self.switch[2]:
            self._end()

    def _begin(self, *, is_exported: bool) -> None:
        self._end()
        self.switch[1] += 1
        self.switch[2] = is_exported
        self.switch[0] = self.switch[1]

    def _end(self) -> None:
        if self.switch[0]:
            self.switch[0] = self.switch[2] = 0
            self._mapping.madvise(mmap.MADV_REMOVE)

    def _fullest(self) -> int:
        """Bytes in the fullest lane."""
        lanes = (self.lane(number).head for number in range(self.lanes))
        return max((head[_END] for head in lanes if head[_GENERATION] == self.switch[0]), default=0)

    def read(self) -> Trace:
        """All that was told so far; empty without a trace under way."""
        spans: list[Span] = []
        dropped = 0
        for number in range(self.lanes):
            lane = self.lane(number)
            if self.switch[0] and lane.head[_GENERATION] == self.switch[0]:
                spans += lane.spans()
                dropped += lane.head[_DROPPED]
        return Trace(tuple(spans), dropped)

    def lane(self, number: int) -> Lane:
        """Raises IndexError."""
        if not 0 <= number < self.lanes:
            raise IndexError(f"lane {number} of {self.lanes}")
        return Lane(self._memory[number * LANE_BYTES : (number + 1) * LANE_BYTES])


class TraceReader:
    """Reads each span of the trace under way once, a process's in their order."""

    def __init__(self, buffer: TraceBuffer) -> None:
        self._buffer = buffer
        self._generation = 0
        self._read = [0] * buffer.lanes
        """How much of each lane, in bytes."""

    def take(self) -> list[Span]:
        """Spans that were told since the last take."""
        generation = self._buffer.switch[0]
        if generation != self._generation:
            self._generation, self._read = generation, [0] * self._buffer.lanes
        return [span for number in range(self._buffer.lanes) for span in self._new_of(number)] if generation else []

    def _new_of(self, number: int) -> Iterator[Span]:
        lane = self._buffer.lane(number)
        if lane.head[_GENERATION] == self._generation:
            begin, self._read[number] = self._read[number], lane.head[_END]
            yield from lane.spans(begin)


class Lane:
    """One writer's part."""

    def __init__(self, memory: memoryview) -> None:
        self.head = memory[:_HEAD_BYTES].cast("Q")
        self._body = memory[_HEAD_BYTES:]

    def append(self, generation: int, span: Span) -> None:
        """A span that has no room is counted."""
        if self.head[_GENERATION] != generation:
            self.head[_END] = self.head[_DROPPED] = 0
            self.head[_GENERATION] = generation
        end, record = self.head[_END], _ENCODER.encode(span)
        after = end + _LENGTH.size + len(record)
        if after > len(self._body):
            self.head[_DROPPED] += 1
            return
        self._body[end:after] = _LENGTH.pack(len(record)) + record
        self.head[_END] = after

    def spans(self, at: int = 0) -> Iterator[Span]:
        """Spans in the order in which they ended; from that byte on."""
        end = min(self.head[_END], len(self._body))
        while at + _LENGTH.size <= end:
            (length,) = _LENGTH.unpack_from(self._body, at)
            at += _LENGTH.size
            yield _DECODER.decode(self._body[at : at + length])
            at += length


class Tracer:
    """One process's way to tell spans; off until it is attached and a trace was started. For the thread of the loop."""

    def __init__(self) -> None:
        self._switch = memoryview(bytearray(_WORD)).cast("Q")
        self._lane: Lane | None = None
        self._process = _NOWHERE
        self._begun: dict[tuple[str, str], float] = {}
        self._begun_in = 0
        """The trace in which they were."""
        self._pod: ContextVar[str] = ContextVar("traced pod", default="")

    @property
    def on(self) -> bool:
        """Whether a trace is under way."""
        return self._switch[0] != 0

    def attach(self, buffer: TraceBuffer, lane: int, process: str) -> None:
        """Tell spans there from now on, under the name of that process. After the fork."""
        self._switch, self._lane, self._process = buffer.switch, buffer.lane(lane), process

    def detach(self) -> None:
        """Tell nothing any more."""
        self._switch, self._lane = memoryview(bytearray(_WORD)).cast("Q"), None
        self._begun.clear()

    def of(self, pod: str) -> None:
        """Have this task, and those that it makes, tell from now on of that pod, unless they say of which."""
        self._pod.set(pod)

    def span(self, name: str, pod: str | None = None, *, cpu: bool = False) -> contextlib.AbstractContextManager[None]:
        """Around what is to be told. ``cpu`` counts the thread's CPU time: for code without an await."""
        return _Open(self, name, pod, cpu) if self._switch[0] else _NOTHING

    def instant(self, name: str, pod: str | None = None) -> None:
        """A moment."""
        if self._switch[0]:
            now = monotonic()
            self.tell(name, pod, now, now)

    def begin(self, name: str, pod: str) -> None:
        """Begin a span that ends elsewhere. Begun twice, the first counts."""
        generation = self._switch[0]
        if not generation:
            return
        if generation != self._begun_in:
            self._begun.clear()
            self._begun_in = generation
        if len(self._begun) < MAX_MARKS:
            self._begun.setdefault((name, pod), monotonic())

    def end(self, name: str, pod: str) -> None:
        """End a span that was begun; one that was not is ignored."""
        if self._switch[0] == self._begun_in and (begun := self._begun.pop((name, pod), None)) is not None:
            self.tell(name, pod, begun, monotonic())

    def tell(self, name: str, pod: str | None, begin: float, end: float, cpu_s: float = 0.0) -> None:
        """Write a span whose times are known."""
        generation = self._switch[0]
        if self._lane is not None and generation:
            of = clipped(self._pod.get() if pod is None else pod, MAX_NAME_BYTES)
            name = clipped(name, MAX_NAME_BYTES)
            self._lane.append(generation, Span(name, of, begin, end, cpu_s, self._process, os.getpid()))


class _Open:
    """A span under way."""

    __slots__ = ("_begin", "_cpu", "_cpu_begin", "_name", "_pod", "_tracer")

    def __init__(self, tracer: Tracer, name: str, pod: str | None, cpu: bool) -> None:
        self._tracer = tracer
        self._name = name
        self._pod = pod
        self._cpu = cpu

    def __enter__(self) -> None:
        self._cpu_begin = thread_cpu() if self._cpu else 0.0
        self._begin = monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        end = monotonic()
        cpu_s = thread_cpu() - self._cpu_begin if self._cpu else 0.0
        self._tracer.tell(self._name, self._pod, self._begin, end, cpu_s)


_NOTHING: Final[contextlib.AbstractContextManager[None]] = contextlib.nullcontext()
TRACER: Final = Tracer()
"""This process's."""
