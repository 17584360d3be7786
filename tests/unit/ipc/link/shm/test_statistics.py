"""The ring of snapshots, and the bell."""

from __future__ import annotations

import asyncio

import pytest

from ipc.link.shm import statistics
from ipc.link.shm.statistics import SNAPSHOTS, StatisticsBuffer, WakeUp

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def buffer(monkeypatch: pytest.MonkeyPatch) -> StatisticsBuffer:
    monkeypatch.setattr(statistics, "SNAPSHOT_BYTES", 4096)
    return StatisticsBuffer()


def test_an_empty_buffer_has_nothing(buffer: StatisticsBuffer) -> None:
    assert buffer.read() is None
    assert buffer.count == 0
    assert buffer.asked_at == 0.0


def test_the_newest_snapshots_are_kept(buffer: StatisticsBuffer) -> None:
    for number in range(SNAPSHOTS + 3):
        buffer.publish(float(number), str(number).encode())
    kept = [buffer.read(back) for back in range(SNAPSHOTS + 1)]
    assert kept == [*(str(n).encode() for n in range(SNAPSHOTS + 2, 2, -1)), None]


def test_a_cleared_buffer_has_nothing_and_begins_anew(buffer: StatisticsBuffer) -> None:
    buffer.publish(1.0, b"old")
    buffer.clear()
    assert buffer.read() is None
    buffer.publish(2.0, b"new")
    assert [buffer.read(0), buffer.read(1)] == [b"new", None]


def test_a_snapshot_without_room_is_refused(buffer: StatisticsBuffer) -> None:
    with pytest.raises(ValueError, match="is not within"):
        buffer.publish(1.0, bytes(buffer.capacity + 1))
    assert buffer.read() is None


async def test_asking_rings_for_the_writer(buffer: StatisticsBuffer) -> None:
    buffer.ask(7.0)
    async with asyncio.timeout(30):
        await buffer.wanted.wait()
    assert buffer.asked_at == 7.0


async def test_a_bell_rung_before_is_heard_once() -> None:
    bell = WakeUp()
    bell.wake()
    bell.wake()
    async with asyncio.timeout(30):
        await bell.wait()
    again = asyncio.ensure_future(bell.wait())
    await asyncio.sleep(0)
    assert not again.done()
    bell.wake()
    async with asyncio.timeout(30):
        await again
