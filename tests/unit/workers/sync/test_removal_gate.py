"""How many pods are down at a time before they are removed, and who goes next."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.clock import simulated
from workers.sync.removal_gate import REMOVED_WITHIN_S, RemovalGate


class Queue:
    """Pods at a gate."""

    def __init__(self, at_a_time: int) -> None:
        self.gate = RemovalGate(at_a_time)
        self.inside: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def comes(self, uid: str, order: int) -> None:
        async def enter() -> None:
            await self.gate.enter(uid, order)
            self.inside.append(uid)

        self.tasks[uid] = asyncio.create_task(enter())
        await asyncio.sleep(0.001)

    async def leaves(self, uid: str) -> None:
        self.gate.leave(uid)
        await asyncio.sleep(0.001)


@simulated
async def test_no_more_than_so_many_are_inside_and_the_first_sync_goes_next() -> None:
    queue = Queue(2)
    for order, uid in enumerate(("a", "b")):
        await queue.comes(uid, order)
    await queue.comes("late", 9)
    await queue.comes("early", 3)
    assert queue.inside == ["a", "b"]
    await queue.leaves("b")
    assert queue.inside == ["a", "b", "early"]
    await queue.leaves("nobody")
    await queue.leaves("a")
    assert queue.inside == ["a", "b", "early", "late"]


@simulated
async def test_a_pod_that_is_inside_takes_one_place_however_often_it_enters() -> None:
    queue = Queue(2)
    for _ in range(3):
        await queue.comes("a", 0)
    await queue.comes("b", 1)
    assert queue.inside == ["a", "a", "a", "b"]
    await queue.comes("c", 2)
    await queue.comes("c", 2)
    assert queue.inside[4:] == []
    await queue.leaves("a")
    assert queue.inside[4:] == ["c", "c"], "both of one pod"


@simulated
async def test_a_pod_that_is_not_removed_soon_keeps_nobody_waiting() -> None:
    queue = Queue(1)
    await queue.comes("a", 0)
    await queue.comes("b", 1)
    await asyncio.sleep(REMOVED_WITHIN_S * 0.9)
    assert queue.inside == ["a"]
    await asyncio.sleep(REMOVED_WITHIN_S * 0.2)
    assert queue.inside == ["a", "b"]
    queue.gate.close()


@simulated
async def test_nobody_else_goes_down_while_removals_take_longer_than_a_clean_up_waits() -> None:
    """Else each of them would add a clean-up, which makes the next removals take longer still."""
    queue = Queue(2)
    for order in range(6):
        await queue.comes(str(order), order)
    for removed in range(4):
        await asyncio.sleep(2.4)
        assert len(queue.inside) == 2 + removed
        await queue.leaves(str(removed))
    queue.gate.close()


@simulated
async def test_a_pod_that_has_ended_outside_of_its_turn_counts_until_it_is_removed() -> None:
    queue = Queue(2)
    await queue.comes("a", 0)
    queue.gate.count("slow")
    queue.gate.count("another")
    await queue.comes("b", 1)
    await queue.leaves("a")
    assert queue.inside == ["a"]
    await queue.leaves("slow")
    assert queue.inside == ["a", "b"]
    queue.gate.close()


@simulated
async def test_who_is_cancelled_keeps_no_place_from_the_next_one() -> None:
    queue = Queue(1)
    await queue.comes("a", 0)
    await queue.comes("b", 1)
    await queue.comes("c", 2)
    queue.tasks["b"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await queue.tasks["b"]
    await queue.leaves("a")
    assert queue.inside == ["a", "c"]
    queue.gate.close()


@simulated
async def test_a_place_given_to_somebody_who_is_cancelled_at_that_moment_is_given_back() -> None:
    queue = Queue(1)
    await queue.comes("a", 0)
    await queue.comes("b", 1)
    await queue.comes("c", 2)
    queue.gate.leave("a")
    queue.tasks["b"].cancel()
    await asyncio.sleep(0.001)
    assert queue.inside == ["a", "c"]
    queue.gate.close()
