"""Turns of one's own and common ones."""

from __future__ import annotations

import asyncio

import pytest

from ipc.eventloop.turns import GiveBack, Turns

OWN, COMMON = 2, 3


async def greedy(turns: Turns, number: int) -> list[asyncio.Task[GiveBack]]:
    """So many for one key, that are never given back."""
    asked = [asyncio.create_task(turns.take("a")) for _ in range(number)]
    await asyncio.sleep(0)
    return asked


async def end(asked: list[asyncio.Task[GiveBack]]) -> None:
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_who_takes_all_leaves_others_their_own() -> None:
    turns = Turns(own=OWN, common=COMMON)
    asked = await greedy(turns, 100)
    assert sum(task.done() for task in asked) == OWN + COMMON
    for key in ("modest", "other"):
        for _ in range(OWN):
            async with asyncio.timeout(30):
                await turns.take(key)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await turns.take("modest")
    await end(asked)


async def test_what_is_given_back_goes_to_who_waits_longest() -> None:
    turns = Turns(own=1, common=1)
    own, common = await turns.take("a"), await turns.take("a")
    first, second = (asyncio.create_task(turns.take(key)) for key in ("a", "b"))
    await asyncio.sleep(0)
    assert second.done(), "it has one of its own"
    third = asyncio.create_task(turns.take("b"))
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
    turns = Turns(own=1, common=0)
    own = await turns.take("a")
    waiting = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    own()
    await asyncio.sleep(0)
    assert waiting.done()


async def test_a_turn_that_comes_to_who_is_gone_is_not_lost() -> None:
    turns = Turns(own=1, common=0)
    own = await turns.take("a")
    waiting = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    own()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(30):
        (await turns.take("a"))()


async def test_nothing_is_kept_of_who_is_done() -> None:
    turns = Turns(own=1, common=1)
    kept = [await turns.take("a"), await turns.take("a")]
    asked = await greedy(turns, 10)
    await end(asked)
    for give_back in kept:
        give_back()
    (await turns.take("b"))()
    assert not turns._waiting
    assert not turns._waiting_of
    assert not +turns._taken
