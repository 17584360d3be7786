"""Turns: bounded, ordered, and none lost to a cancellation."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.sync.mutation_limiter import MutationLimiter, OwnSlots


async def test_the_sync_that_began_first_goes_first() -> None:
    limiter = MutationLimiter(OwnSlots(1))
    done: list[int] = []

    async def work(order: int) -> None:
        async with limiter.permit(order):
            done.append(order)
            await asyncio.sleep(0)

    async with limiter.permit(0):
        waiting = [asyncio.create_task(work(order)) for order in (3, 1, 2, 1)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert done == [1, 1, 2, 3]


@given(
    at_a_time=st.integers(1, 4),
    orders=st.lists(st.integers(0, 9), max_size=30),
    cancelled=st.sets(st.integers(0, 29)),
)
def test_never_more_than_that_many_and_no_turn_is_lost(at_a_time: int, orders: list[int], cancelled: set[int]) -> None:
    async def run() -> None:
        limiter = MutationLimiter(OwnSlots(at_a_time))
        running = most = 0

        async def work(order: int) -> None:
            nonlocal running, most
            async with limiter.permit(order):
                running += 1
                most = max(most, running)
                try:
                    await asyncio.sleep(0)
                finally:
                    running -= 1

        tasks = [asyncio.create_task(work(order)) for order in orders]
        await asyncio.sleep(0)
        for number in cancelled & set(range(len(tasks))):
            tasks[number].cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= at_a_time
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            for order in range(at_a_time):
                group.create_task(work(order))

    asyncio.run(run())


async def test_a_turn_given_to_a_cancelled_waiter_goes_on() -> None:
    limiter = MutationLimiter(OwnSlots(1))
    holder = limiter.permit(0)
    await holder.__aenter__()
    first, second = (asyncio.create_task(_hold(limiter, order)) for order in (1, 2))
    await asyncio.sleep(0)
    await holder.__aexit__(None, None, None)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    async with asyncio.timeout(5):
        await second


async def _hold(limiter: MutationLimiter, order: int) -> None:
    async with limiter.permit(order):
        await asyncio.sleep(0)
