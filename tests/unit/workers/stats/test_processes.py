"""Figures of a container from its processes."""

from __future__ import annotations

from workers.stats.accounts import NOTHING, Counters
from workers.stats.processes import LEAST_NS, NS_PER_TICK, cpu_of


def test_what_runs_has_used_something_before_the_first_tick() -> None:
    """metrics-server leaves out a pod with a container that has used 0."""
    nothing, tick = (cpu_of(counters, 5.0).usage_ns for counters in (NOTHING, Counters(system_ticks=1)))
    assert nothing == LEAST_NS
    assert tick == NS_PER_TICK
    assert 0 < nothing < tick, "the counter does not fall"
