"""Work that is done again and again, by one process that is woken as rarely as that allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from ipc.link.eventloop.loop_clock import loop_time
from supervisor.periodic import EARLY, Periodic, act_periodically
from tests.fakes.clock import simulated

LONG_S = 60.0


def _moments(*periods_s: float) -> tuple[list[list[float]], list[Periodic]]:
    """Works of these periods, and the moments at which each was done so far."""
    moments: list[list[float]] = [[] for _ in periods_s]

    def act(number: int) -> Callable[[], None]:
        return lambda: moments[number].append(loop_time())

    return moments, [Periodic(partial(float, period_s), act(i)) for i, period_s in enumerate(periods_s)]


@simulated
async def test_what_falls_due_at_nearly_the_same_moment_is_done_at_once() -> None:
    (often, seldom), works = _moments(1.001, 2.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(act_periodically(*works), LONG_S)
    assert len(often) >= 59
    assert len(seldom) >= 29
    assert set(seldom) <= set(often)


@simulated
async def test_each_is_done_as_often_as_it_says_and_hardly_earlier() -> None:
    began = loop_time()
    moments, works = _moments(0.7, 3.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(act_periodically(*works), LONG_S)
    for period_s, done in zip((0.7, 3.0), moments, strict=True):
        pauses = [after - before for before, after in zip([began, *done], done, strict=False)]
        assert min(pauses) >= (1 - EARLY) * period_s - 1e-6
        assert max(pauses) <= period_s + 1e-6


@simulated
async def test_an_error_ends_it() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await act_periodically(Periodic(lambda: 1.0, fail))
