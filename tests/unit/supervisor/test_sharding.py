"""Which slot a pod belongs to, and where it moves when their number changes."""

from __future__ import annotations

from supervisor.sharding import Shards, least_loaded
from supervisor.worker_pool import FIRST_POD_SLOT

A, B, C = FIRST_POD_SLOT, FIRST_POD_SLOT + 1, FIRST_POD_SLOT + 2


def everywhere(slot: int) -> bool:
    return True


def test_the_slot_with_the_fewest_pods_the_first_of_several() -> None:
    assert least_loaded((A, B), {A: 1, B: 1}) == A
    assert least_loaded((A, B), {A: 1}) == B


def test_pods_are_dealt_out_evenly() -> None:
    shards = Shards(2)
    assert [shards.assign() for _ in range(4)] == [A, B, A, B]
    shards.release(B)
    shards.release(B)
    assert [shards.assign() for _ in range(2)] == [B, B]


def test_a_new_slot_gets_new_pods_and_then_its_part_of_the_others() -> None:
    shards = Shards(1)
    for _ in range(5):
        shards.assign()
    shards.resize(2)
    assert shards.assign() == B
    assert not shards.uneven(lambda slot: slot == A), "nobody moves to where nobody is"
    moved = 0
    while shards.uneven(everywhere):
        assert shards.better_slot(A, everywhere) == B
        shards.move(A, B)
        moved += 1
    assert moved == 2
    assert shards.pods_per_slot() == {A: 3, B: 3}


def test_a_closed_slot_gives_all_away_and_is_named_once_when_it_is_empty() -> None:
    shards = Shards(2)
    for _ in range(4):
        shards.assign()
    shards.resize(1)
    assert list(shards.vacated()) == []
    assert (shards.assign(), shards.better_slot(A, everywhere), shards.better_slot(B, everywhere)) == (A, A, A)
    shards.move(B, A)
    assert shards.uneven(everywhere)
    shards.release(B)
    assert not shards.uneven(everywhere)
    assert list(shards.vacated()) == [B]
    assert list(shards.vacated()) == []
    shards.resize(2)
    assert shards.pods_per_slot() == {A: 4, B: 0}


def test_without_anybody_to_take_them_pods_stay_where_they_are() -> None:
    shards = Shards(2)
    shards.assign()
    shards.assign()
    shards.resize(1)
    assert shards.better_slot(B, lambda slot: False) == B
