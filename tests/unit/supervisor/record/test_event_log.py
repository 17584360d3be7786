"""Events on disk: what is written comes back, whatever happens to the writer, the file or the disk."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.api.v1.event import Event
from ipc.api.v1.meta import ObjectMeta, ObjectReference
from ipc.host.atomic_file import write_atomically
from ipc.host.clock import Instant, rfc3339
from ipc.host.private_directories import make_private
from ipc.messages.base import EventReport
from ipc.messages.event_reasons import EventType
from supervisor.record import event_log
from supervisor.record.event_log import EventLog, EventLogError
from supervisor.record.event_writer import RETRY_S, EventWriter
from supervisor.record.recorder import EventRecorder
from tests.podman_service import wait_until

TREE = Path(__file__).parents[4]
WALL = 1_800_000_000.0


def event(name: str, count: int = 1, message: str = "m") -> Event:
    at = rfc3339(WALL)
    return Event(
        metadata=ObjectMeta(name=name, namespace="default", creation_timestamp=at),
        involved_object=ObjectReference(kind="Pod", namespace="default", name="p", uid="u"),
        reason="R",
        message=message,
        type=EventType.NORMAL,
        first_timestamp=at,
        last_timestamp=at,
        count=count,
    )


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
    with pytest.raises(EventLogError, match=why) as caught:
        EventLog(path).load()
    assert "moved to events.jsonl.refused" in str(caught.value)
    assert [entry.name for entry in path.parent.iterdir()] == ["events.jsonl.refused"]
    assert EventLog(path).load() == ()


def test_what_is_no_regular_file_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(EventLogError, match="not a regular file"):
        EventLog(path).load()


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    written(tmp_path / "elsewhere", event("a"))
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EventLogError, match="symbolic link"):
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


def recorder_of(*messages: str) -> EventRecorder:
    recorder = EventRecorder("node", 100, 3600.0)
    for message in messages:
        record(recorder, message)
    return recorder


def record(recorder: EventRecorder, message: str) -> None:
    report = EventReport(uid="u", namespace="default", name="p", type=EventType.NORMAL, reason=message, message=message)
    recorder.record(report, WALL)


def messages(path: Path) -> list[str]:
    return [event.message for event in EventLog(path).load()]


class HandClock:
    """Stands still until it is moved."""

    mono = 1000.0

    def now(self) -> Instant:
        return Instant(mono=self.mono, wall=WALL)


class Disk(EventLog):
    """Takes nothing while ``is_full``; counts the tries."""

    is_full = False
    tries = 0

    def write(self, changed: Sequence[Event], everything: Sequence[Event]) -> None:
        self.tries += 1
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(changed, everything)


async def ticks(keeper: EventWriter, history: EventRecorder, until: Callable[[], bool]) -> None:
    """The master's, until it is so."""
    async with asyncio.timeout(10):
        while not until():
            keeper.keep(history)
            await asyncio.sleep(0.01)


async def test_what_happens_is_on_disk_soon_and_nothing_is_written_for_nothing(path: Path) -> None:
    disk = Disk(path)
    keeper, history = EventWriter(disk, HandClock()), recorder_of("a")
    assert keeper.restore() == ()
    await ticks(keeper, history, lambda: messages(path) == ["a"])
    record(history, "b")
    await ticks(keeper, history, lambda: messages(path) == ["a", "b"])
    for _ in range(5):
        keeper.keep(history)
    await keeper.close(history)
    assert disk.tries == 2


async def test_the_end_waits_for_the_last_ones(path: Path) -> None:
    keeper, history = EventWriter(EventLog(path), HandClock()), recorder_of("a")
    keeper.keep(history)
    record(history, "b")
    await keeper.close(history)
    assert messages(path) == ["a", "b"]
    successor = EventWriter(EventLog(path), HandClock())
    assert [event.message for event in successor.restore()] == ["a", "b"]
    await successor.close(recorder_of())


async def test_a_file_that_cannot_be_used_is_told_and_does_not_matter(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_private(path.parent)
    write_atomically(path, b"rubbish\n")
    keeper, history = EventWriter(EventLog(path), HandClock()), recorder_of("a")
    assert keeper.restore() == ()
    assert "moved to events.jsonl.refused" in caplog.text
    await keeper.close(history)
    assert messages(path) == ["a"]


async def test_a_full_disk_is_told_once_and_what_was_missed_is_written_later(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rootlet.events")
    clock, disk, history = HandClock(), Disk(path), recorder_of("a")
    keeper, disk.is_full = EventWriter(disk, clock), True
    await ticks(keeper, history, lambda: "not kept" in caplog.text)
    record(history, "b")
    keeper.keep(history)
    assert disk.tries == 1, "not tried again at once"
    clock.mono += RETRY_S
    await ticks(keeper, history, lambda: disk.tries == 2)
    disk.is_full = False
    clock.mono += RETRY_S
    await ticks(keeper, history, lambda: messages(path) == ["a", "b"])
    await keeper.close(history)
    assert [entry.message for entry in caplog.records] == [
        "events are not kept on disk, only in memory: No space left on device",
        "events are kept on disk again",
    ]


WRITER = """
import sys
from pathlib import Path
from supervisor.record.event_log import EventLog
from tests.unit.supervisor.record.test_event_log import event
log = EventLog(Path(sys.argv[1]))
live = {e.metadata.name: e for e in log.load()}
while True:
    changed = [event(str(n), live[str(n)].count + 1 if str(n) in live else 1, "x" * 900) for n in range(50)]
    live = {e.metadata.name: e for e in changed}
    log.write(changed, changed)
"""


def test_a_killed_writer_leaves_what_can_be_read(path: Path) -> None:
    """Killed while it writes without a pause, three lives in a row."""
    count = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=TREE) as writer:
            try:
                wait_until(partial(has_more_than, path, count), 20.0, 0.01)
            finally:
                writer.kill()
        found = EventLog(path).load()
        assert len(found) == 50
        count = found[-1].count


def has_more_than(path: Path, count: int) -> bool:
    """The last whole line is of an event that happened more often."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return bool(lines) and json.loads(lines[-1]).get("count", 0) > count
