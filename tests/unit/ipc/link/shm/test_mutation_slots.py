"""Slots of the node among members of one process: each has an open file description of its own, as processes have."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from ipc.link.shm.mutation_slots import MAX_MEMBERS, MAX_SLOTS, MutationSlots, SlotMember


@pytest.fixture
def shared() -> Iterator[MutationSlots]:
    slots = MutationSlots.create(slots=3, members=4)
    yield slots
    slots.close()


def rung(member: SlotMember) -> bool:
    heard = bool(select.select([member.wakeup], [], [], 0)[0])
    member.clear_wakeup()
    return heard


def test_one_member_may_have_all_and_nobody_more(shared: MutationSlots) -> None:
    busy, other = shared.member(0), shared.member(1)
    assert [busy.acquire() for _ in range(4)] == [True, True, True, False]
    assert not other.acquire()
    busy.release()
    assert other.acquire()
    assert not busy.acquire()


def test_a_member_that_goes_gives_everything_back(shared: MutationSlots) -> None:
    gone, other = shared.member(0), shared.member(1)
    assert all(gone.acquire() for _ in range(3))
    gone.set_waiting(True)
    assert other.others_wait()
    gone.close()
    assert not other.others_wait()
    assert all(other.acquire() for _ in range(3))


def test_who_waits_is_rung_in_turn_when_a_slot_is_given(shared: MutationSlots) -> None:
    first, second, third, giver = (shared.member(number) for number in (0, 1, 2, 3))
    assert all(giver.acquire() for _ in range(3))
    for member in (first, third):
        member.set_waiting(True)
    giver.release()
    assert [rung(member) for member in (first, second, third)] == [True, False, False]
    assert first.acquire()
    first.release()
    assert [rung(member) for member in (first, second, third)] == [False, False, True]


def test_nobody_is_rung_when_nobody_else_waits(shared: MutationSlots) -> None:
    alone, other = shared.member(0), shared.member(1)
    alone.set_waiting(True)
    assert alone.acquire()
    assert not alone.others_wait()
    alone.release()
    assert not rung(alone)
    alone.set_waiting(False)
    assert not other.others_wait()


def test_the_last_member_sees_those_before_it(shared: MutationSlots) -> None:
    first, last = shared.member(0), shared.member(3)
    first.set_waiting(True)
    assert last.others_wait()
    last.set_waiting(True)
    first.set_waiting(False)
    assert first.others_wait()
    assert not last.others_wait()


@pytest.mark.parametrize(("slots", "members"), [(0, 1), (1, 0), (MAX_SLOTS + 1, 1), (1, MAX_MEMBERS + 1)])
def test_sizes_are_bounded(slots: int, members: int) -> None:
    with pytest.raises(ValueError, match="not within"):
        MutationSlots.create(slots=slots, members=members)
