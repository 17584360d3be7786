"""The writer of the event log: its thread writes, a disk that takes nothing matters to nobody."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ipc.host.atomic_file import write_atomically
from ipc.host.private_directories import make_private
from ipc.k8s.api.v1.event import Event
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventType
from supervisor.record.event_log import EventLog
from supervisor.record.event_writer import RETRY_S, EventWriter
from supervisor.record.recorder import EventRecorder
from tests.fakes.clock import HandClock
from tests.support.events import WALL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "events.jsonl"


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
    keeper, history = EventWriter(disk, HandClock(wall=WALL)), recorder_of("a")
    assert keeper.restore() == ()
    await ticks(keeper, history, lambda: messages(path) == ["a"])
    record(history, "b")
    await ticks(keeper, history, lambda: messages(path) == ["a", "b"])
    for _ in range(5):
        keeper.keep(history)
    await keeper.close(history)
    assert disk.tries == 2


async def test_the_end_waits_for_the_last_ones(path: Path) -> None:
    keeper, history = EventWriter(EventLog(path), HandClock(wall=WALL)), recorder_of("a")
    keeper.keep(history)
    record(history, "b")
    await keeper.close(history)
    assert messages(path) == ["a", "b"]
    successor = EventWriter(EventLog(path), HandClock(wall=WALL))
    assert [event.message for event in successor.restore()] == ["a", "b"]
    await successor.close(recorder_of())


async def test_a_file_that_cannot_be_used_is_told_and_does_not_matter(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_private(path.parent)
    write_atomically(path, b"rubbish\n")
    keeper, history = EventWriter(EventLog(path), HandClock(wall=WALL)), recorder_of("a")
    assert keeper.restore() == ()
    assert "moved to events.jsonl.refused" in caplog.text
    await keeper.close(history)
    assert messages(path) == ["a"]


async def test_a_full_disk_is_told_once_and_what_was_missed_is_written_later(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "supervisor.record.event_writer")
    clock, disk, history = HandClock(wall=WALL), Disk(path), recorder_of("a")
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
