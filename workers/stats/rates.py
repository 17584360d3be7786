"""CPU use as a rate between two samples. Pure but for what it remembers."""

from __future__ import annotations

from typing import Final

import msgspec

from workers.statsapi.values import Cpu

MIN_S: Final = 0.5
"""Shortest time between two samples that makes a rate: clock ticks are of 10 ms."""


class Rates:
    """Newest samples by name; those that were not asked for in a round are forgotten."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, int, int | None]] = {}
        self._now: dict[str, tuple[float, int, int | None]] = {}

    def with_rate(self, name: str, cpu: Cpu, mono: float) -> Cpu:
        """The sample, read at that monotonic second, with its rate since the one before."""
        if cpu.usage_ns is None:
            return cpu
        before = self._before.get(name)
        if before is None:
            nano_cores, since = None, (mono, cpu.usage_ns)
        elif mono - before[0] < MIN_S:
            nano_cores, since = before[2], before[:2]
        else:
            nano_cores = max(0, round((cpu.usage_ns - before[1]) / (mono - before[0])))
            since = (mono, cpu.usage_ns)
        self._now[name] = (*since, nano_cores)
        return msgspec.structs.replace(cpu, nano_cores=nano_cores)

    def round_over(self) -> None:
        """All samples of this round were given."""
        self._before, self._now = self._now, {}

    def forget(self) -> None:
        """Nobody looks for a while: a rate over such a time would say nothing."""
        self._before, self._now = {}, {}
