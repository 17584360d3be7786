"""When statistics are collected: every ten seconds while somebody asks, and not at all otherwise.

Upstream's housekeeping runs for ever, every 10 to 15 s (pkg/kubelet/cadvisor/cadvisor_linux.go). Here a request begins
it, and two minutes after the last one it ends; a request for which one snapshot is enough has one round. The first
round is followed by another after a second, so that rates are there soon. A round that costs much makes the pause after
it longer: never more than a hundredth of one CPU.

The collector is imported when it is first asked for, and with it the types of what it collects.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ipc.host.clock import Clock, thread_cpu
from ipc.link.shm.statistics import StatisticsBuffer
from workers.stats.targets import PodTarget

if TYPE_CHECKING:
    from workers.stats.collector import Collector

KEEP_S: Final = 120.0
"""Housekeeping goes on for so long after the last request, in seconds."""
PERIOD_S: Final = 10.0
MAX_JITTER: Final = 1.5
"""A period is up to so many times as long."""
FIRST_PAUSE_S: Final = 1.0
"""Between the first two rounds, in seconds. The least between any two."""
COST_FACTOR: Final = 100.0
"""A pause is at least so many times what the round before it has cost in CPU time."""
URGENT_COST_FACTOR: Final = 10.0
"""... and so many times when somebody wants figures that are newer than there are."""

FRESH_DEADLINE_S: Final = 15.0
"""A snapshot that is wanted at once is waited for so long, in seconds."""

Targets = Callable[[], Sequence[PodTarget]]


class Housekeeping:
    """The node worker's task of statistics, and the one writer of the buffer."""

    def __init__(
        self,
        buffer: StatisticsBuffer,
        clock: Clock,
        rng: random.Random,
        targets: Targets,
        make: Callable[[], Collector],
    ) -> None:
        """``targets``: what runs now. ``make`` imports the collector."""
        self._buffer = buffer
        self._clock = clock
        self._rng = rng
        self._targets = targets
        self._make = make
        self._collector: Collector | None = None
        self._number = 0
        self._round_over = asyncio.Event()
        """Set at the end of the round at hand; each has one of its own."""

    async def run(self) -> None:
        """Collect whenever that is wanted, for ever."""
        while True:
            while not self._is_wanted():
                await self._rest()
            await self._collect_while_wanted()

    async def fresh(self) -> bytes | None:
        """A snapshot that begins after this call, for somebody in this process; None when there is none in time."""
        began = self._clock.now().mono
        self._buffer.ask(began, fresh_after=began)
        try:
            async with asyncio.timeout(FRESH_DEADLINE_S):
                while self._buffer.newest_at <= began:
                    await self._round_over.wait()
        except TimeoutError:
            return None
        return self._buffer.read()

    def _is_wanted(self) -> bool:
        return self._is_lasting() or self._buffer.fresh_after > self._buffer.newest_at

    def _is_lasting(self) -> bool:
        lasting_at = self._buffer.lasting_at
        return lasting_at > 0.0 and self._clock.now().mono - lasting_at <= KEEP_S

    async def _rest(self) -> None:
        """Until somebody asks. What there is stays as long as somebody may come again, and is forgotten then."""
        kept_s = self._buffer.asked_at + KEEP_S - self._clock.now().mono if self._buffer.count else None
        try:
            async with asyncio.timeout(kept_s):
                await self._buffer.wanted.wait()
        except TimeoutError:
            if self._collector is not None:
                await asyncio.to_thread(self._collector.rest)
            self._buffer.clear()

    async def _collect_while_wanted(self) -> None:
        collector = await self._ready()
        pause_s = FIRST_PAUSE_S
        while self._is_wanted():
            cost_s = await self._round(collector)
            if not self._is_lasting():
                return
            await self._pause(
                max(pause_s, COST_FACTOR * cost_s), urgent_s=max(FIRST_PAUSE_S, URGENT_COST_FACTOR * cost_s)
            )
            pause_s = PERIOD_S * self._rng.uniform(1.0, MAX_JITTER)

    async def _ready(self) -> Collector:
        """The collector; with what an earlier incarnation of this process has counted."""
        if self._collector is None:
            self._collector = await asyncio.to_thread(self._make)
            if (last := self._buffer.read()) is not None:
                self._number = self._collector.resume(last)
        return self._collector

    async def _round(self, collector: Collector) -> float:
        """CPU time that it has cost, in seconds."""
        began = self._clock.now().mono
        packed, cost_s = await asyncio.to_thread(self._collect, collector, self._targets())
        self._number += 1
        self._buffer.publish(began, packed)
        self._round_over.set()
        self._round_over = asyncio.Event()
        return cost_s

    def _collect(self, collector: Collector, targets: Sequence[PodTarget]) -> tuple[bytes, float]:
        began = thread_cpu()
        packed = collector.collect_encoded(targets, self._number, self._buffer.capacity)
        return packed, thread_cpu() - began

    async def _pause(self, seconds: float, urgent_s: float) -> None:
        """Until the next round is due, or wanted earlier, which is after ``urgent_s`` at the earliest."""
        began = self._clock.now().mono
        end, earliest = began + seconds, began + urgent_s
        collected_at = self._buffer.newest_at
        while (now := self._clock.now().mono) < end:
            is_urgent = self._buffer.fresh_after > collected_at
            if is_urgent and now >= earliest:
                return
            try:
                async with asyncio.timeout((earliest if is_urgent else end) - now):
                    await self._buffer.wanted.wait()
            except TimeoutError:
                continue
