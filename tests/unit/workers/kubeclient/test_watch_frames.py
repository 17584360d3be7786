"""Events of a watch, however its bytes are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kubeclient import watch_frames
from workers.kubeclient.protocol import UNREADABLE, WatchEvent
from workers.kubeclient.watch_frames import WatchFormatError, WatchFrames

OBJECTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["ADDED", "BOOKMARK"]), OBJECTS), max_size=6), st.data())
def test_every_event_comes_once_and_in_order(events: list[tuple[str, dict[str, object]]], data: st.DataObject) -> None:
    text = b"".join(json.dumps({"type": kind, "object": each}).encode() + b"\n" for kind, each in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    frames, found = WatchFrames(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += frames.feed(text[start:end])
    assert [(event.type, json.loads(event.object)) for event in found] == events


def test_the_object_is_given_as_it_came() -> None:
    line = b'{"type":"ADDED","object":{"b": 1.0,"a":[]},"new":1}\n\r\n'
    assert WatchFrames().feed(line) == [WatchEvent("ADDED", b'{"b": 1.0,"a":[]}')]


@pytest.mark.parametrize(
    "line", [b"no\n", b"[]\n", b'{"type":1,"object":{}}\n', b'{"type":"A"}\n', b"[" * 5000 + b"\n"]
)
def test_a_line_that_is_no_event_hides_no_other(line: bytes) -> None:
    good = b'{"type":"ADDED","object":{}}\n'
    assert [event.type for event in WatchFrames().feed(good + line + good)] == ["ADDED", UNREADABLE, "ADDED"]


def test_an_event_without_an_end_is_refused_before_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_frames, "MAX_EVENT_BYTES", 1000)
    frames = WatchFrames()
    for _ in range(10):
        assert frames.feed(b"x" * 100) == []
    with pytest.raises(WatchFormatError, match="1000"):
        frames.feed(b"x")
