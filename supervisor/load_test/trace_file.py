"""A trace in Chrome's Trace Event Format, which Perfetto opens: a track for each pod in each process. Pure.

Spans that only overlap, as calls in flight at a time do, get tracks beside each other: in one track they would have to
lie within each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.link.shm.trace import Span

MICROS: Final = 1_000_000
OF_NO_POD: Final = "no single pod"

Track = tuple[int, str, int]
"""Pid, pod, and number of the track among those of the pod in that process."""


def as_chrome_trace(spans: Iterable[Span], names: Mapping[str, str], dropped: int = 0) -> bytes:
    """The file. ``names`` of pods by their UIDs; ``dropped``: how many spans there was no room for."""
    ordered = sorted(spans, key=lambda span: (span.begin, -span.end))
    tracked = list(zip(ordered, _tracks(ordered), strict=True))
    begin = ordered[0].begin if ordered else 0.0
    tids = dict(zip(dict.fromkeys(track for _, track in tracked), itertools.count(1)))
    events = [_event(span, names, begin, tids[track]) for span, track in tracked]
    processes = {span.pid: span.process for span in ordered}
    about = [_named("process_name", pid, 0, process) for pid, process in processes.items()]
    about += [_named("thread_name", track[0], tid, _title(track, names)) for track, tid in tids.items()]
    file = {"displayTimeUnit": "ms", "otherData": {"droppedSpans": dropped}, "traceEvents": about + events}
    return msgspec.json.encode(file) + b"\n"


def _event(span: Span, names: Mapping[str, str], begin: float, tid: int) -> JsonObject:
    args: JsonObject = {"pod": names.get(span.pod, span.pod)}
    if span.cpu_s:
        args["cpu ms"] = round(1000 * span.cpu_s, 3)
    at = round(MICROS * (span.begin - begin), 1)
    common = {"name": span.name, "cat": span.process, "pid": span.pid, "tid": tid, "ts": at, "args": args}
    if span.end == span.begin:
        return {**common, "ph": "i", "s": "t"}
    return {**common, "ph": "X", "dur": round(MICROS * (span.end - span.begin), 1)}


def _tracks(ordered: Iterable[Span]) -> Iterator[Track]:
    """The first track of its pod in its process in which a span lies within those that are open, or behind them."""
    open_spans: dict[Track, list[Span]] = {}
    for span in ordered:
        for number in itertools.count():
            track = (span.pid, span.pod, number)
            stack = open_spans.setdefault(track, [])
            while stack and stack[-1].end <= span.begin:
                stack.pop()
            if not stack or span.end <= stack[-1].end:
                stack.append(span)
                yield track
                break


def _named(what: str, pid: int, tid: int, name: str) -> JsonObject:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _title(track: Track, names: Mapping[str, str]) -> str:
    _, pod, number = track
    title = names.get(pod, pod) or OF_NO_POD
    return title if number == 0 else f"{title} ({number + 1})"
