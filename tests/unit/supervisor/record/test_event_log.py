"""Events on disk: what is written comes back, whatever happens to the writer, the file or the disk."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.state_file import StateUnusable
from ipc.k8s.api.v1.event import Event
from supervisor.record import event_log
from supervisor.record.event_log import EventLog
from tests.support.events import event


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "events.jsonl"


def written(path: Path, *events: Event) -> EventLog:
    """A log with these, each written on its own."""
    made = EventLog(path)
    for number in range(len(events)):
        made.write(events[number : number + 1], events[: number + 1])
    return made


def test_what_is_written_comes_back_and_the_newest_state_counts(path: Path) -> None:
    events = event("a"), event("ü", message="zwei\nZeilen"), event("a", count=2)
    written(path, *events)
    assert EventLog(path).load() == (events[1], events[2]), "longest unseen first"


def test_no_file_is_no_error(path: Path) -> None:
    assert EventLog(path).load() == ()


def test_it_is_private(path: Path) -> None:
    written(path, event("a"), event("b"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_change_costs_a_line(path: Path) -> None:
    events = tuple(event(str(number)) for number in range(100))
    log = EventLog(path)
    log.write(events, events)
    inode, size = path.stat().st_ino, path.stat().st_size
    log.write([event("0", count=2)], events)
    assert path.stat().st_ino == inode
    assert path.stat().st_size - size == len(msgspec.json.encode(event("0", count=2))) + 1


@given(cut=st.integers(0, 400))
def test_a_write_that_was_cut_short_loses_only_itself(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "events.jsonl"
    written(path, event("a"), event("b"))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    path.write_bytes(whole[: max(last, len(whole) - cut)])
    successor = EventLog(path)
    found = successor.load()
    assert found == ((event("a"), event("b")) if cut == 0 else (event("a"),))
    successor.write([event("c")], (*found, event("c")))
    assert EventLog(path).load() == (*found, event("c")), "what is cut off does not stay in the middle"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data.replace(b'"reason":"R"', b'"reason":7', 1), "line 2"),
        (lambda data: data.replace(b'"lastTimestamp":"2', b'"lastTimestamp":"x', 1), "line 2"),
        (lambda data: data.replace(b'"version":1', b'"version":2'), "of version 2"),
        (lambda data: data[: len(data) // 2] + b"\0" * 9 + b"\n", "line 2"),
        (lambda data: b"\xff\xfe\n" + data, "JSON"),
        (lambda data: b"", "truncated"),
    ],
)
def test_a_damaged_file_is_set_aside(path: Path, damage: Callable[[bytes], bytes], why: str) -> None:
    written(path, event("a"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StateUnusable, match=why) as caught:
        EventLog(path).load()
    assert "moved to events.jsonl.refused" in str(caught.value)
    assert [entry.name for entry in path.parent.iterdir()] == ["events.jsonl.refused"]
    assert EventLog(path).load() == ()


def test_what_is_no_regular_file_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StateUnusable, match="not a regular file"):
        EventLog(path).load()


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    written(tmp_path / "elsewhere", event("a"))
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateUnusable, match="symbolic link"):
        EventLog(path).load()
    before = (tmp_path / "elsewhere").read_bytes()
    written(path, event("b"))
    assert (tmp_path / "elsewhere").read_bytes() == before
    assert EventLog(path).load() == (event("b"),)


def test_the_file_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MIN_ROOM_BYTES", 4000)
    log, live = EventLog(path), tuple(event(str(number)) for number in range(10))
    sizes = set()
    for count in range(2, 500):
        changed = event("9", count=count)
        live = (*live[:9], changed)
        log.write([changed], live)
        sizes.add(path.stat().st_size)
    assert max(sizes) < 4000 + 2 * min(sizes)
    assert EventLog(path).load() == live


def test_too_many_bytes_of_events_leave_the_oldest_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_LIVE_BYTES", 3000)
    events = tuple(event(str(number)) for number in range(50))
    EventLog(path).write(events, events)
    found = EventLog(path).load()
    assert 0 < len(found) < 50
    assert found == events[-len(found) :]
    assert path.stat().st_size < 3100


def test_a_file_that_somebody_has_touched_is_written_anew(path: Path) -> None:
    log = written(path, event("a"))
    path.write_bytes(b"rubbish")
    log.write([event("b")], (event("a"), event("b")))
    assert EventLog(path).load() == (event("a"), event("b"))
    path.unlink()
    log.write([event("c")], (event("b"), event("c")))
    assert EventLog(path).load() == (event("b"), event("c"))


def test_after_a_failure_nothing_is_missing(path: Path) -> None:
    log = written(path, event("a"))
    path.chmod(0o600)
    path.rename(path.with_name("away"))
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        log.write([event("b")], (event("a"), event("b")))
    path.rmdir()
    path.with_name("away").rename(path)
    assert EventLog(path).load() == (event("a"),), "what was there before"
    log.write([event("c")], (event("a"), event("b"), event("c")))
    assert EventLog(path).load() == (event("a"), event("b"), event("c"))


def test_a_write_that_the_disk_took_only_a_part_of_costs_nothing_once_there_is_room(path: Path) -> None:
    log = written(path, event("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="too large"):
                log.write([event("b")], (event("a"), event("b")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes()[-1:] != b"\n", "a part of it is there"
    assert EventLog(path).load() == (event("a"),)
    assert os.listdir(path.parent) == [path.name]
    log.write([event("c")], (event("a"), event("b"), event("c")))
    assert EventLog(path).load() == (event("a"), event("b"), event("c"))


# --- when it is written ------------------------------------------------------------------------------------------
