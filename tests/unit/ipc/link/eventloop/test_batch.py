"""Bursts: who waits for their end, and for how long."""

from __future__ import annotations

import asyncio
import itertools
from unittest.mock import patch

import pytest

from ipc.link.eventloop import batch as bursts
from ipc.link.eventloop.batch import LONGEST_S, QUIET_S, Batch, BatchGate
from ipc.link.eventloop.loop_clock import loop_time
from tests.fakes.clock import simulated

SOON_S = QUIET_S / 2


def test_what_comes_alone_holds_nothing_up() -> None:
    burst = Batch()
    assert burst.left_s(0.0) == 0.0
    for now in (1.0, 2.0):
        burst.came(now)
        assert burst.left_s(now) == 0.0


def test_the_first_may_wait_for_a_second() -> None:
    burst = Batch(alone_s=SOON_S)
    burst.came(1.0)
    assert burst.left_s(1.0) == pytest.approx(SOON_S)
    assert burst.left_s(1.0 + SOON_S) == 0.0
    burst.came(1.0 + SOON_S)
    assert burst.left_s(1.0 + SOON_S) == pytest.approx(QUIET_S)


def test_a_burst_is_over_a_moment_after_the_last_one() -> None:
    burst = Batch()
    for now in (1.0, 1.0 + SOON_S, 1.0 + 2 * SOON_S):
        burst.came(now)
    assert burst.left_s(1.0 + 2 * SOON_S) == pytest.approx(QUIET_S)
    assert burst.left_s(1.0 + 2 * SOON_S + QUIET_S) == 0.0


def test_a_burst_without_end_holds_up_for_so_long() -> None:
    burst = Batch()
    now = 1.0
    while now < 1.0 + 3 * LONGEST_S:
        burst.came(now)
        assert burst.left_s(now) <= max(0.0, 1.0 + LONGEST_S - now)
        now += SOON_S


@simulated
async def test_all_that_wait_pass_together() -> None:
    gate, passed = BatchGate(), list[float]()
    began_at = loop_time()

    async def act() -> None:
        gate.came()
        await gate.over()
        passed.append(loop_time() - began_at)

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(act())
            await asyncio.sleep(SOON_S)
    assert passed == [0.0, *[pytest.approx(3 * SOON_S + QUIET_S)] * 3]
    await gate.over()
    assert loop_time() - began_at == pytest.approx(3 * SOON_S + QUIET_S)


@simulated
async def test_who_is_cancelled_while_waiting_takes_nobody_along() -> None:
    gate = BatchGate()
    gate.came()
    gate.came()
    gate.came()
    tasks = []
    await asyncio.sleep(0.001)
    gate.came()
    for _ in range(2):
        tasks.append(asyncio.create_task(gate.over()))
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait_for(tasks[1], 60)
    assert tasks[0].cancelled()


@simulated
async def test_a_burst_that_ends_while_somebody_asks_is_over() -> None:
    """The clock goes on between two looks at it."""
    times = itertools.chain([0.0, 0.001, QUIET_S], itertools.repeat(2 * QUIET_S))
    gate = BatchGate()
    with patch.object(bursts, "loop_time", lambda: next(times)):
        gate.came()
        gate.came()
        await asyncio.wait_for(gate.over(), 60)
        await asyncio.wait_for(gate.over(), 60)
