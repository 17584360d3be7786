"""Slots of the node among members of one process: each has an open file description of its own, as processes have."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from ipc.shm.mutation_slots import MAX_MEMBERS, MAX_SLOTS, MutationSlots, SlotMember


@pytest.fixture
def shared() -> Iterator[MutationSlots]:
    slots = MutationSlots.create(slots=3, members=4)
    yield slots
    slots.close()


def rung(member: SlotMember) -> bool:
    heard = bool(select.select([member.bell], [], [], 0)[0])
    member.hear()
    return heard


def test_one_member_may_have_all_and_nobody_more(shared: MutationSlots) -> None:
    busy, other = shared.member(0), shared.member(1)
    assert [busy.take() for _ in range(4)] == [True, True, True, False]
    assert not other.take()
    busy.give()
    assert other.take()
    assert not busy.take()


def test_a_member_that_goes_gives_everything_back(shared: MutationSlots) -> None:
    gone, other = shared.member(0), shared.member(1)
    assert all(gone.take() for _ in range(3))
    gone.wait(True)
    assert other.others_wait()
    gone.close()
    assert not other.others_wait()
    assert all(other.take() for _ in range(3))


def test_who_waits_is_rung_in_turn_when_a_slot_is_given(shared: MutationSlots) -> None:
    first, second, third, giver = (shared.member(number) for number in (0, 1, 2, 3))
    assert all(giver.take() for _ in range(3))
    for member in (first, third):
        member.wait(True)
    giver.give()
    assert [rung(member) for member in (first, second, third)] == [True, False, False]
    assert first.take()
    first.give()
    assert [rung(member) for member in (first, second, third)] == [False, False, True]


def test_nobody_is_rung_when_nobody_else_waits(shared: MutationSlots) -> None:
    alone, other = shared.member(0), shared.member(1)
    alone.wait(True)
    assert alone.take()
    assert not alone.others_wait()
    alone.give()
    assert not rung(alone)
    alone.wait(False)
    assert not other.others_wait()


def test_the_last_member_sees_those_before_it(shared: MutationSlots) -> None:
    first, last = shared.member(0), shared.member(3)
    first.wait(True)
    assert last.others_wait()
    last.wait(True)
    first.wait(False)
    assert first.others_wait()
    assert not last.others_wait()


@pytest.mark.parametrize(("slots", "members"), [(0, 1), (1, 0), (MAX_SLOTS + 1, 1), (1, MAX_MEMBERS + 1)])
def test_sizes_are_bounded(slots: int, members: int) -> None:
    with pytest.raises(ValueError, match="not within"):
        MutationSlots.create(slots=slots, members=members)
