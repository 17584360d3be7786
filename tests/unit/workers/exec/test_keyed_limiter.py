"""Permits of each key's own, and common ones."""

from __future__ import annotations

import asyncio

import pytest

from workers.exec.keyed_limiter import KeyedLimiter, Release

OWN, COMMON = 2, 3


async def greedy(limiter: KeyedLimiter, number: int) -> list[asyncio.Task[Release]]:
    """So many for one key, that are never given back."""
    asked = [asyncio.create_task(limiter.acquire("a")) for _ in range(number)]
    await asyncio.sleep(0)
    return asked


async def end(asked: list[asyncio.Task[Release]]) -> None:
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_who_takes_all_leaves_others_their_own() -> None:
    limiter = KeyedLimiter(own=OWN, common=COMMON)
    asked = await greedy(limiter, 100)
    assert sum(task.done() for task in asked) == OWN + COMMON
    for key in ("modest", "other"):
        for _ in range(OWN):
            async with asyncio.timeout(30):
                await limiter.acquire(key)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await limiter.acquire("modest")
    await end(asked)


async def test_what_is_given_back_goes_to_who_waits_longest() -> None:
    limiter = KeyedLimiter(own=1, common=1)
    own, common = await limiter.acquire("a"), await limiter.acquire("a")
    first, second = (asyncio.create_task(limiter.acquire(key)) for key in ("a", "b"))
    await asyncio.sleep(0)
    assert second.done(), "it has one of its own"
    third = asyncio.create_task(limiter.acquire("b"))
    await asyncio.sleep(0)
    common()
    await asyncio.sleep(0)
    assert (first.done(), third.done()) == (True, False)
    own()
    await asyncio.sleep(0)
    assert not third.done(), "that was another's"
    (await first)()
    await asyncio.sleep(0)
    assert third.done()


async def test_its_own_turn_serves_who_waits_for_a_common_one() -> None:
    limiter = KeyedLimiter(own=1, common=0)
    own = await limiter.acquire("a")
    waiting = asyncio.create_task(limiter.acquire("a"))
    await asyncio.sleep(0)
    own()
    await asyncio.sleep(0)
    assert waiting.done()


async def test_a_turn_that_comes_to_who_is_gone_is_not_lost() -> None:
    limiter = KeyedLimiter(own=1, common=0)
    own = await limiter.acquire("a")
    waiting = asyncio.create_task(limiter.acquire("a"))
    await asyncio.sleep(0)
    own()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(30):
        (await limiter.acquire("a"))()


async def test_nothing_is_kept_of_who_is_done() -> None:
    limiter = KeyedLimiter(own=1, common=1)
    kept = [await limiter.acquire("a"), await limiter.acquire("a")]
    asked = await greedy(limiter, 10)
    await end(asked)
    for release in kept:
        release()
    (await limiter.acquire("b"))()
    assert not limiter._waiting
    assert not limiter._waiting_of
    assert not +limiter._taken
