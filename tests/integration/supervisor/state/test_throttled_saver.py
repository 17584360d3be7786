"""One write at a time, not too often, and a disk that takes nothing costs only what the file is for."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from supervisor.state.throttled_saver import ThrottledSaver, Write
from tests.fakes.clock import HandClock

log = logging.getLogger("test")


class Disk:
    """Notes what is written; takes nothing while ``is_full``, and hangs while ``may_go`` is not set."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.is_full = False
        self.may_go = threading.Event()
        self.may_go.set()
        self.threads: set[int] = set()

    def write(self, version: int) -> Write:
        def blocks() -> None:
            self.threads.add(threading.get_ident())
            assert self.may_go.wait(10)
            if self.is_full:
                raise OSError("full")
            self.written.append(version)

        return blocks


def saver(clock: HandClock, *, period_s: float = 0.0, retry_s: float = 0.0) -> ThrottledSaver[int]:
    return ThrottledSaver("things", 0, clock, log, period_s=period_s, retry_s=retry_s)


async def test_only_news_is_written_and_in_another_thread() -> None:
    disk, of = Disk(), saver(HandClock())
    of.keep(lambda: 0, disk.write)
    of.keep(lambda: 1, disk.write)
    await of.settled()
    assert of.written == 1
    of.keep(lambda: 1, disk.write)
    await of.close(lambda: 1, disk.write)
    assert disk.written == [1]
    assert threading.get_ident() not in disk.threads


async def test_while_one_write_is_under_way_there_is_no_other() -> None:
    disk, of = Disk(), saver(HandClock())
    disk.may_go.clear()
    of.keep(lambda: 1, disk.write)
    of.keep(lambda: 2, disk.write)
    disk.may_go.set()
    await of.settled()
    assert of.written == 1
    assert disk.written == [1]
    await of.close(lambda: 3, disk.write)
    assert disk.written == [1, 3]


async def test_the_period_is_between_two_looks() -> None:
    clock, disk = HandClock(), Disk()
    of = saver(clock, period_s=5.0)
    of.keep(lambda: 1, disk.write)
    await of.settled()
    assert of.written == 1
    clock.mono += 4.9
    of.keep(lambda: 2, disk.write)
    clock.mono += 0.1
    of.keep(lambda: 3, disk.write)
    await of.settled()
    assert of.written == 3
    await of.close(lambda: 3, disk.write)
    assert disk.written == [1, 3]


async def test_a_full_disk_is_said_once_tried_again_and_caught_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "test")
    clock, disk = HandClock(), Disk()
    of, disk.is_full = saver(clock, retry_s=10.0), True
    of.keep(lambda: 1, disk.write)
    await of.settled()
    disk.is_full = False
    of.keep(lambda: 2, disk.write)
    clock.mono += 10.0
    of.keep(lambda: 3, disk.write)
    await of.settled()
    assert of.written == 3
    await of.close(lambda: 3, disk.write)
    assert disk.written == [3]
    assert [record.message for record in caplog.records] == [
        "things are not kept on disk, only in memory: full",
        "things are kept on disk again",
    ]


async def test_the_end_does_not_wait_for_a_disk_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor.state.throttled_saver.LAST_WRITE_S", 0.05)
    disk, of = Disk(), saver(HandClock())
    disk.may_go.clear()
    async with asyncio.timeout(5):
        await of.close(lambda: 1, disk.write)
    disk.may_go.set()
