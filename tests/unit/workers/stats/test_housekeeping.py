"""When statistics are collected."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any

import pytest

from ipc.link.shm import statistics
from ipc.link.shm.statistics import StatisticsBuffer
from tests.fakes.clock import SimClock, simulate
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.statistics import Statistics
from workers.stats import housekeeping
from workers.stats.collector import Collector
from workers.stats.housekeeping import FIRST_PAUSE_S, KEEP_S, MAX_JITTER, PERIOD_S, Housekeeping
from workers.stats.targets import PodTarget
from workers.statsapi.values import Cpu, NodeSample, Snapshot, Source, decode_snapshot

pytestmark = pytest.mark.timeout(60)


class FakeCollector(Collector):
    """Writes down when it is asked; the second round after a rest has rates. Measures nothing."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self.rounds: list[float] = []
        self.rests = 0
        self.remembered: Snapshot | None = None
        self._fresh = True

    def remember(self, last: Snapshot) -> None:
        self.remembered = last

    def rest(self) -> None:
        self.rests += 1
        self._fresh = True

    def collect(self, pods: Sequence[PodTarget], number: int) -> Snapshot:
        now = self._clock.now()
        self.rounds.append(now.mono)
        cpu = Cpu(source=Source.HOST, time=now.wall, usage_ns=1, nano_cores=None if self._fresh else 5)
        self._fresh = False
        return Snapshot(time=now.wall, mono=now.mono, number=number, node=NodeSample(name="n", cpu=cpu))


class World:
    def __init__(self, buffer: StatisticsBuffer) -> None:
        self.clock = SimClock()
        self.buffer = buffer
        self.made: list[FakeCollector] = []
        self.housekeeping = Housekeeping(buffer, self.clock, random.Random(1), tuple, self._make)
        self.reader = Statistics(buffer, self.clock)
        self._task = asyncio.ensure_future(self.housekeeping.run())

    def _make(self) -> Collector:
        self.made.append(FakeCollector(self.clock))
        return self.made[-1]

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.reader.close()


@pytest.fixture
def buffer(monkeypatch: pytest.MonkeyPatch) -> StatisticsBuffer:
    monkeypatch.setattr(statistics, "SNAPSHOT_BYTES", 64 * 1024)
    # CPU time is real, and a round that costs much on a busy machine lengthens the simulated pause.
    monkeypatch.setattr(housekeeping, "thread_cpu", lambda: 0.0)
    return StatisticsBuffer()


def run(buffer: StatisticsBuffer, test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = World(buffer)
        try:
            await test(world)
        finally:
            await world.end()

    simulate(main)


def test_nothing_is_made_while_nobody_asks(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        await asyncio.sleep(10 * KEEP_S)
        assert world.made == []
        assert buffer.count == 0

    run(buffer, test)


def test_the_first_answer_comes_at_once_and_rates_a_second_later(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        began = world.clock.now().mono
        bare = await world.reader.snapshot()
        assert world.clock.now().mono == began
        assert bare.node.cpu is not None
        assert bare.node.cpu.nano_cores is None
        with_rates = await world.reader.snapshot(rates=True)
        assert with_rates.node.cpu is not None
        assert with_rates.node.cpu.nano_cores == 5
        assert world.clock.now().mono == pytest.approx(began + FIRST_PAUSE_S)

    run(buffer, test)


def test_it_goes_on_for_a_while_and_then_gives_everything_back(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        await world.reader.snapshot()
        await asyncio.sleep(KEEP_S - 1)
        (collector,) = world.made
        pauses = [b - a for a, b in pairwise(collector.rounds[1:])]
        assert len(pauses) > 5
        assert all(PERIOD_S <= pause <= PERIOD_S * MAX_JITTER for pause in pauses)
        assert collector.rests == 0
        await asyncio.sleep(2 + PERIOD_S * MAX_JITTER)
        rounds = len(collector.rounds)
        assert collector.rests == 1
        assert buffer.read() is None
        await asyncio.sleep(KEEP_S)
        assert len(collector.rounds) == rounds
        await world.reader.snapshot()
        assert world.made == [collector], "its counters go on"
        assert len(collector.rounds) == rounds + 1

    run(buffer, test)


def test_one_for_whom_one_snapshot_is_enough_has_one_round(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        await world.reader.snapshot(lasting=False, max_age_s=60.0)
        (collector,) = world.made
        await asyncio.sleep(50.0)
        await world.reader.snapshot(lasting=False, max_age_s=60.0)
        assert len(collector.rounds) == 1, "what there is is new enough"
        await asyncio.sleep(50.0)
        await world.reader.snapshot(lasting=False, max_age_s=60.0)
        assert len(collector.rounds) == 2
        assert collector.rests == 0
        await asyncio.sleep(KEEP_S + 1)
        assert (len(collector.rounds), collector.rests, buffer.read()) == (2, 1, None)
        await asyncio.sleep(KEEP_S + 1)
        assert (len(collector.rounds), collector.rests) == (2, 1)

    run(buffer, test)


def test_one_who_comes_again_has_rates_soon_after_one_for_whom_one_snapshot_was_enough(
    buffer: StatisticsBuffer,
) -> None:
    async def test(world: World) -> None:
        await world.reader.snapshot(lasting=False)
        began = world.clock.now().mono
        with_rates = await world.reader.snapshot(rates=True)
        assert with_rates.node.cpu is not None
        assert with_rates.node.cpu.nano_cores == 5
        assert world.clock.now().mono <= began + FIRST_PAUSE_S

    run(buffer, test)


def test_requests_keep_it_going(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        for _ in range(10):
            await world.reader.snapshot()
            await asyncio.sleep(KEEP_S / 2)
        assert world.made[0].rests == 0

    run(buffer, test)


def test_many_requests_are_answered_by_one_round(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        answers = await asyncio.gather(*(world.reader.snapshot() for _ in range(100)))
        assert len({answer.number for answer in answers}) == 1
        assert len(world.made[0].rounds) == 1

    run(buffer, test)


def test_an_answer_is_never_older_than_asked_for(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        await world.reader.snapshot(rates=True)
        await asyncio.sleep(4.0)
        asked_at = world.clock.now().mono
        fresh = await world.reader.snapshot(max_age_s=0.0)
        assert fresh.mono >= asked_at
        await asyncio.sleep(0.1)
        again = await world.reader.snapshot(max_age_s=0.0)
        assert again.mono >= fresh.mono + FIRST_PAUSE_S, "but no more than once a second"

    run(buffer, test)


def test_a_costly_round_makes_the_next_one_late(buffer: StatisticsBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_s = iter(range(10_000))
    monkeypatch.setattr(housekeeping, "thread_cpu", lambda: float(next(cpu_s)))

    async def test(world: World) -> None:
        await world.reader.snapshot()
        await asyncio.sleep(housekeeping.COST_FACTOR - 1)
        assert len(world.made[0].rounds) == 1
        fresh = await world.reader.snapshot()
        assert fresh.number == 1, "earlier when somebody wants it"
        await asyncio.sleep(0.1)
        old = await world.reader.snapshot(max_age_s=0.0)
        assert old == fresh, "an old answer, whose times say so, and no error"

    run(buffer, test)


def test_without_a_node_worker_there_are_no_statistics(buffer: StatisticsBuffer) -> None:
    async def main() -> None:
        reader = Statistics(buffer, SimClock())
        with pytest.raises(ApiError) as refused:
            await reader.snapshot()
        assert refused.value.status.code == 503
        await reader.close()

    simulate(main)


def test_a_new_node_worker_goes_on_where_a_dead_one_was(buffer: StatisticsBuffer) -> None:
    async def main() -> None:
        first = World(buffer)
        await first.reader.snapshot(rates=True)
        await first.end()
        second = World(buffer)
        await asyncio.sleep(1.0)
        (collector,) = second.made
        assert collector.remembered is not None
        assert collector.remembered.number == 1
        newest = await second.reader.snapshot()
        assert newest.number >= 2
        await second.end()

    simulate(main)


def test_the_history_is_that_of_the_newest_rounds(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        await world.reader.snapshot()
        await asyncio.sleep(60.0)
        numbers = [snapshot.number for snapshot in await world.reader.history(3)]
        assert len(numbers) == 3
        assert numbers == sorted(numbers)
        everything = await world.reader.history(60)
        assert [snapshot.number for snapshot in everything] == list(range(len(world.made[0].rounds)))

    run(buffer, test)


def test_what_lies_in_shared_memory_is_a_snapshot(buffer: StatisticsBuffer) -> None:
    async def test(world: World) -> None:
        found = await world.reader.snapshot()
        packed = buffer.read()
        assert packed is not None
        assert decode_snapshot(packed) == found

    run(buffer, test)
