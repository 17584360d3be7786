"""Slots that pods belong to, and where pods move when their number changes."""

from __future__ import annotations

import pytest

from supervisor.config.settings import Settings, WorkersSettings
from supervisor.pods.sharding import (
    QUIET_PER_BUSY,
    Shards,
    WorkerLimits,
    least_loaded,
    worker_limits,
    workers_wanted,
)
from supervisor.processes.worker_pool import FIRST_POD_SLOT

A, B, C = FIRST_POD_SLOT, FIRST_POD_SLOT + 1, FIRST_POD_SLOT + 2


def everywhere(slot: int) -> bool:
    return True


def test_the_slot_with_the_fewest_pods_the_first_of_several() -> None:
    assert least_loaded((A, B), {A: 1, B: 1}.__getitem__) == A
    assert least_loaded((A, B), {A: 1, B: 0}.__getitem__) == B


def test_pods_are_dealt_out_evenly() -> None:
    shards = Shards(WorkerLimits(2))
    assert [shards.assign() for _ in range(4)] == [A, B, A, B]
    shards.release(B)
    shards.release(B)
    assert [shards.assign() for _ in range(2)] == [B, B]


def test_a_new_slot_gets_new_pods_and_then_its_part_of_the_others() -> None:
    shards = Shards(WorkerLimits(1))
    for _ in range(5):
        shards.assign()
    shards.limit(WorkerLimits(2))
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
    shards = Shards(WorkerLimits(2))
    for _ in range(4):
        shards.assign()
    shards.limit(WorkerLimits(1))
    assert list(shards.vacated()) == []
    assert (shards.assign(), shards.better_slot(A, everywhere), shards.better_slot(B, everywhere)) == (A, A, A)
    shards.move(B, A)
    assert shards.uneven(everywhere)
    shards.release(B)
    assert not shards.uneven(everywhere)
    assert list(shards.vacated()) == [B]
    assert list(shards.vacated()) == []
    shards.limit(WorkerLimits(2))
    assert shards.pods_per_slot() == {A: 4, B: 0}


def test_without_anybody_to_take_them_pods_stay_where_they_are() -> None:
    shards = Shards(WorkerLimits(2))
    shards.assign()
    shards.assign()
    shards.limit(WorkerLimits(1))
    assert shards.better_slot(B, lambda slot: False) == B


@pytest.mark.parametrize(
    ("pods", "there", "wanted"),
    [
        (0, 1, 1),
        (100, 1, 1),
        (101, 1, 2),
        (201, 1, 3),
        (1000, 1, 4),
        (1000, 4, 4),
        (400, 4, 4),
        (226, 4, 4),
        (225, 4, 3),
        (76, 2, 2),
        (75, 2, 1),
        (0, 4, 1),
        (101, 9, 2),
    ],
)
def test_there_are_as_many_workers_as_the_pods_need_and_one_goes_only_when_the_others_have_room_left(
    pods: int, there: int, wanted: int
) -> None:
    assert workers_wanted(pods, there, WorkerLimits(4, 100)) == wanted


def test_by_default_one_worker_has_the_starts_of_300_pods_and_2000_that_are_quiet() -> None:
    limits = worker_limits(Settings(workers=WorkersSettings(count=4)))
    shards = Shards(limits)
    assert {shards.assign() for _ in range(300)} == {A}
    assert [workers_wanted(busy, 1, limits) for busy in (400, 401)] == [1, 2]
    assert [workers_wanted(quiet / QUIET_PER_BUSY, 1, limits) for quiet in (2000, 2001)] == [1, 2]


def test_a_pod_more_or_less_makes_no_worker_and_ends_none() -> None:
    limits, there, changes = WorkerLimits(64, 10), 1, 0
    for pods in (10, 11, 10, 11, 9, 10, 11, 20, 21, 20, 21, 19):
        changes += workers_wanted(pods, there, limits) != there
        there = workers_wanted(pods, there, limits)
    assert (there, changes) == (3, 2)


def test_all_workers_are_there_always_when_no_number_of_pods_is_given() -> None:
    assert {workers_wanted(pods, 1, WorkerLimits(3)) for pods in (0, 1, 1000)} == {3}


def test_the_pod_that_is_one_too_many_is_the_first_of_a_new_worker() -> None:
    shards = Shards(WorkerLimits(2, 3))
    assert shards.workers == 1
    assert [shards.assign() for _ in range(4)] == [A, A, A, B]
    assert shards.workers == 2
    shards.release(A)
    shards.release(A)
    shards.fit()
    assert shards.workers == 1
    assert list(shards.vacated()) == []
    assert shards.better_slot(B, everywhere) == A


def test_quiet_pods_need_fewer_workers_and_are_given_to_those_that_stay() -> None:
    shards = Shards(WorkerLimits(2, 3, quiet_after_s=10.0))
    for _ in range(6):
        shards.assign()
    assert shards.pods_per_slot() == {A: 3, B: 3}
    shards.quieten(A, 3)
    shards.fit()
    assert shards.workers == 2, "three busy ones and three quiet ones are more than one worker has"
    shards.quieten(B, 3)
    shards.fit()
    assert shards.workers == 1
    assert shards.better_slot(B, everywhere, is_quiet=True) == A
    for _ in range(3):
        shards.move(B, A, is_quiet=True)
    assert list(shards.vacated()) == [B]
    assert shards.pods_per_slot() == {A: 6}


def test_a_quiet_pod_stays_where_it_is_while_busy_ones_share_the_workers_out() -> None:
    shards = Shards(WorkerLimits(2, 2, quiet_after_s=10.0))
    for _ in range(2):
        shards.assign()
    shards.quieten(A, 2)
    assert [shards.assign() for _ in range(4)] == [A, B, B, A]
    assert not shards.uneven(everywhere)
    shards.release(B)
    shards.release(B)
    assert shards.uneven(everywhere)
    assert shards.better_slot(A, everywhere, is_quiet=True) == A
    assert shards.better_slot(A, everywhere) == B


def test_quiet_pods_alone_are_not_uneven() -> None:
    shards = Shards(WorkerLimits(2, 1, quiet_after_s=10.0))
    for _ in range(20):
        shards.assign()
    for slot in (A, B):
        shards.quieten(slot, 10)
    for _ in range(8):
        shards.release(B, is_quiet=True)
    assert shards.workers == 2
    assert not shards.uneven(everywhere)


def test_where_all_workers_are_there_always_a_quiet_pod_is_a_pod_as_any_other() -> None:
    shards = Shards(WorkerLimits(2, 0, quiet_after_s=10.0))
    for _ in range(2):
        shards.assign()
    shards.assign()
    shards.quieten(A, 2)
    assert shards.assign() == B
    shards.release(B)
    shards.release(B)
    assert shards.better_slot(A, everywhere, is_quiet=True) == B


def test_pods_that_bring_a_worker_begin_in_one_that_is_up_as_long_as_they_are_few() -> None:
    shards = Shards(WorkerLimits(2, pods_per_worker=4))
    given = [shards.assign(lambda slot: slot == A) for _ in range(8)]
    assert given == [A] * 6 + [B] * 2
    assert shards.assign(everywhere) == B
    everyone = Shards(WorkerLimits(2))
    assert [everyone.assign(lambda slot: slot == A) for _ in range(2)] == [A, B], "all are there always, or soon"
