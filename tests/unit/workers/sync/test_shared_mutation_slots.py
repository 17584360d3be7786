"""Turns of several workers that share the slots of a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ipc.link.shm.mutation_slots import POLL_S, MutationSlots, SlotMember
from workers.sync.mutation_limiter import MutationLimiter

pytestmark = pytest.mark.timeout(30)

SLOTS = 2


@pytest.fixture
async def node() -> AsyncIterator[Callable[[], MutationLimiter]]:
    shared, made = MutationSlots.create(slots=SLOTS, members=4), list[MutationLimiter]()

    def worker() -> MutationLimiter:
        made.append(MutationLimiter(shared.member(len(made))))
        return made[-1]

    yield worker
    for limiter in made:
        limiter.close()
    shared.close()


class Work:
    """Counts what runs at a time, notes who had a turn."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.done: list[tuple[str, int]] = []

    async def do(
        self, limiter: MutationLimiter, who: str, order: int, act: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        async with limiter.permit(order):
            self.now += 1
            self.most = max(self.most, self.now)
            await (act() if act else asyncio.sleep(0.001))
            self.now -= 1
            self.done.append((who, order))


async def test_one_busy_worker_has_all_slots(node: Callable[[], MutationLimiter]) -> None:
    busy, _idle = node(), node()
    work = Work()
    await asyncio.gather(*(work.do(busy, "a", n) for n in range(10)))
    assert work.most == SLOTS
    assert [order for _, order in work.done] == sorted(order for _, order in work.done)


async def test_a_worker_that_has_all_slots_looks_for_none(
    node: Callable[[], MutationLimiter], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, acquire = list[bool](), SlotMember.acquire

    def look(member: SlotMember) -> bool:
        looks.append(acquire(member))
        return looks[-1]

    busy, other, release = node(), node(), asyncio.Event()
    work = Work()

    async def hold() -> None:
        await release.wait()

    holders = [asyncio.create_task(work.do(busy, "a", n, hold)) for n in range(SLOTS)]
    waiter = asyncio.create_task(work.do(busy, "a", SLOTS))
    await asyncio.sleep(0)
    monkeypatch.setattr(SlotMember, "acquire", look)
    await asyncio.sleep(3 * POLL_S)
    assert not looks
    async with asyncio.timeout(10):
        late = asyncio.create_task(work.do(other, "b", 0))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*holders, waiter, late)


async def test_several_busy_workers_keep_the_limit_and_take_turns(node: Callable[[], MutationLimiter]) -> None:
    workers = {name: node() for name in "abc"}
    work = Work()
    await asyncio.gather(*(work.do(limiter, name, n) for name, limiter in workers.items() for n in range(20)))
    assert work.most == SLOTS
    half = [who for who, _ in work.done[:30]]
    assert min(half.count(name) for name in "abc") >= 6, half


async def test_a_latecomer_waits_for_a_turn_and_not_for_the_end_of_the_others(
    node: Callable[[], MutationLimiter],
) -> None:
    busy, late = node(), node()
    work = Work()
    many = [asyncio.create_task(work.do(busy, "busy", n)) for n in range(100)]
    while len(work.done) < 10:  # noqa: ASYNC110 - what the tasks note
        await asyncio.sleep(0)
    await work.do(late, "late", 0)
    assert work.done.index(("late", 0)) < 30
    await asyncio.gather(*many)


async def test_a_worker_that_hangs_while_it_waits_costs_the_others_little(node: Callable[[], MutationLimiter]) -> None:
    shared = MutationSlots.create(slots=1, members=2)
    hung, limiter, work = shared.member(0), MutationLimiter(shared.member(1)), Work()
    hung.set_waiting(True)
    async with asyncio.timeout(5):
        await asyncio.gather(*(work.do(limiter, "a", n) for n in range(5)))
    assert work.most == 1
    limiter.close()
    hung.close()
    shared.close()


async def test_a_worker_that_dies_gives_back_what_it_held(node: Callable[[], MutationLimiter]) -> None:
    shared = MutationSlots.create(slots=1, members=2)
    dead, limiter, work = shared.member(0), MutationLimiter(shared.member(1)), Work()
    assert dead.acquire()
    waiting = asyncio.create_task(work.do(limiter, "a", 0))
    await asyncio.sleep(0)
    dead.close()  # nobody rings
    async with asyncio.timeout(5):
        await waiting
    limiter.close()
    shared.close()


async def test_a_cancelled_waiter_keeps_nobody_from_his_turn(node: Callable[[], MutationLimiter]) -> None:
    first, second = node(), node()
    work = Work()
    release = asyncio.Event()

    async def hold() -> None:
        await release.wait()

    holders = [asyncio.create_task(work.do(first, "a", n, hold)) for n in range(SLOTS)]
    await asyncio.sleep(0)
    given_up, patient = (asyncio.create_task(work.do(limiter, "b", 0)) for limiter in (first, second))
    await asyncio.sleep(0)
    given_up.cancel()
    release.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*holders, patient)
    assert given_up.cancelled()
    async with asyncio.timeout(5):
        await asyncio.gather(*(work.do(first, "c", n) for n in range(SLOTS + 1)))
