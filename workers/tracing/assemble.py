"""Traces of what the processes have told (`ipc.link.shm.trace`): each sync and each probe is one, with the calls within
it.

Nothing but the time, the process and the pod says which call belongs to which sync: a pod has one sync at a time, and a
span is told when it ends, the sync's own after those within it. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.link.shm.trace import Span

MAX_WAITING: Final = 10_000
"""Most calls whose sync has not ended; beyond it the oldest are dropped."""
MILLION: Final = 1_000_000

_SYNC: Final = "sync: "
_SYNCS: Final[Mapping[str, str]] = {
    f"{_SYNC}sync": "syncPod",
    f"{_SYNC}terminating": "syncTerminatingPod",
    f"{_SYNC}terminated": "syncTerminatedPod",
}
"""Names of the kubelet's spans (pkg/kubelet/kubelet.go)."""
_PROBE: Final = "probe: "
_OBSERVATION: Final = "observes"
_CALL: Final = "Podman: "
_PULL: Final = "pull: "
_CHILDREN: Final = (_CALL, _PULL, "files: ", "waits for a mutation slot")
_TRACE_IDS: Final = 1 << 64
"""The low eight bytes of a trace's id decide whether it is sampled, as TraceIdRatioBased does it."""


class ExportedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One span of a trace. Times in monotonic seconds."""

    trace_id: int
    span_id: int
    parent_id: int
    """0 for the first span of a trace."""
    name: str
    begin: float
    end: float
    attributes: Mapping[str, str | int | float]


class Assembler:
    """Takes spans in the order of each process, and gives whole traces."""

    def __init__(self, sampling_rate_per_million: int) -> None:
        self._bound = sampling_rate_per_million * _TRACE_IDS // MILLION
        self._waiting: dict[tuple[int, str], list[Span]] = {}
        """By process and pod; the pod whose first call has waited longest comes first."""
        self._number_waiting = 0

    def take(self, spans: Iterable[Span]) -> list[ExportedSpan]:
        """The spans of the traces that have ended with one of these."""
        return [exported for span in spans for exported in self._take(span)]

    def _take(self, span: Span) -> Iterator[ExportedSpan]:
        if span.name.startswith(_PROBE):
            yield from self._trace(span, span.name.replace(": ", " ", 1), [])
        elif name := _SYNCS.get(span.name):
            yield from self._trace(span, name, self._within(span))
        elif span.name == _OBSERVATION:
            self._within(span)
        elif span.name.startswith(_CHILDREN) and span.pod:
            self._wait(span)

    def _wait(self, span: Span) -> None:
        self._waiting.setdefault((span.pid, span.pod), []).append(span)
        self._number_waiting += 1
        while self._number_waiting > MAX_WAITING:
            self._number_waiting -= len(self._waiting.pop(next(iter(self._waiting))))

    def _within(self, root: Span) -> list[Span]:
        """Take the calls of that pod in that process out of those that wait."""
        waiting = self._waiting.pop((root.pid, root.pod), [])
        self._number_waiting -= len(waiting)
        return [span for span in waiting if root.begin <= span.begin and span.end <= root.end]

    def _trace(self, root: Span, name: str, children: list[Span]) -> Iterator[ExportedSpan]:
        trace_id = _number(root, 16)
        if trace_id % _TRACE_IDS >= self._bound:
            return
        span_id = _number(root, 8)
        yield _exported(root, name, trace_id, span_id, 0)
        for number, child in enumerate(children):
            yield _exported(child, _child_name(child.name), trace_id, _number(child, 8, number), span_id)


def _child_name(name: str) -> str:
    return name.removeprefix(_CALL).replace(": ", " ", 1)


def _exported(span: Span, name: str, trace_id: int, span_id: int, parent_id: int) -> ExportedSpan:
    attributes: dict[str, str | int | float] = {
        "k8s.pod.uid": span.pod,
        "process.pid": span.pid,
        "rootlet.process": span.process,
    }
    if span.cpu_s:
        attributes["rootlet.cpu_s"] = span.cpu_s
    return ExportedSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=name,
        begin=span.begin,
        end=span.end,
        attributes=attributes,
    )


def _number(span: Span, size: int, number: int = 0) -> int:
    """An id of so many bytes, never 0, which stands for that span alone."""
    of_it = msgspec.msgpack.encode((span, number))
    return int.from_bytes(hashlib.blake2b(of_it, digest_size=size).digest()) | 1 << (8 * size - 1)
