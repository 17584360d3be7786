from __future__ import annotations

import itertools
import json
from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipc.link.shm.trace import Span
from supervisor.load_test.trace_file import OF_NO_POD, as_chrome_trace

MOMENTS = st.integers(0, 30)
SPANS = st.lists(
    st.builds(
        lambda pod, begin, length, pid: Span("call", pod, float(begin), float(begin + length), 0.0, f"p{pid}", pid),
        st.sampled_from(["", "one", "two"]),
        MOMENTS,
        MOMENTS,
        st.integers(1, 2),
    ),
    max_size=25,
)


def events(spans: list[Span], names: dict[str, str] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(as_chrome_trace(spans, names or {}))["traceEvents"]
    return found


@given(SPANS)
def test_spans_of_a_track_lie_within_each_other_or_behind(spans: list[Span]) -> None:
    found = [event for event in events(spans) if event["ph"] in "Xi"]
    assert len(found) == len(spans)
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in found:
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event.get("dur", 0)))
    for track in tracks.values():
        for (begin, end), (other_begin, other_end) in itertools.combinations(track, 2):
            apart = end <= other_begin or other_end <= begin
            within = begin <= other_begin <= other_end <= end or other_begin <= begin <= end <= other_end
            assert apart or within


@given(SPANS)
def test_a_track_is_of_one_process_and_one_pod(spans: list[Span]) -> None:
    pods: dict[tuple[int, int], set[str]] = defaultdict(set)
    for event in events(spans):
        if event["ph"] in "Xi":
            pods[event["pid"], event["tid"]].add(event["args"]["pod"])
    assert all(len(found) == 1 for found in pods.values())


def test_times_are_microseconds_from_the_first_span_on() -> None:
    spans = [Span("second", "uid", 10.5, 10.75, 0.002, "node-0", 8), Span("first", "uid", 10.0, 10.0, 0.0, "api-1", 9)]
    first, second = [event for event in events(spans, {"uid": "web"}) if event["ph"] != "M"]
    assert (first["name"], first["ph"], first["ts"]) == ("first", "i", 0)
    assert (second["ph"], second["ts"], second["dur"], second["pid"]) == ("X", 500_000, 250_000, 8)
    assert second["args"] == {"pod": "web", "cpu ms": 2.0}


def test_processes_and_tracks_have_names() -> None:
    spans = [
        Span("call", "uid", 0.0, 2.0, 0.0, "node-0", 8),
        Span("call", "uid", 1.0, 3.0, 0.0, "node-0", 8),
        Span("list", "", 0.0, 1.0, 0.0, "node-0", 8),
    ]
    titles = [event["args"]["name"] for event in events(spans, {"uid": "web"}) if event["ph"] == "M"]
    assert sorted(titles) == sorted(["node-0", "web", "web (2)", OF_NO_POD])


def test_an_empty_trace_says_how_much_was_dropped() -> None:
    assert json.loads(as_chrome_trace([], {}, 3)) == {
        "displayTimeUnit": "ms",
        "otherData": {"droppedSpans": 3},
        "traceEvents": [],
    }
