from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from workers.pleg.relist_schedule import LIVENESS_PERIOD_S, RELIST_JITTER, RelistSchedule

SHORTEST_S = 10.0
LONGEST_S = 300.0
NOW = 100_000.0
"""When the last relist has ended."""
TICK_S = 0.001

Act = Callable[[RelistSchedule], None]


class Middle(random.Random):
    """No jitter."""

    def uniform(self, a: float, b: float) -> float:
        assert (a, b) == (1 - RELIST_JITTER, 1 + RELIST_JITTER)
        return (a + b) / 2


def relist(
    schedule: RelistSchedule,
    now: float,
    took_s: float = 0.0,
    *,
    is_surprise: bool = False,
    again_in_s: float = math.inf,
) -> None:
    """One that ends now."""
    schedule.begun(now - took_s)
    schedule.answered(now)
    schedule.plan(now, started_at=now - took_s, is_surprise=is_surprise, again_in_s=again_in_s)


def after_quiet(relists: int = 0) -> RelistSchedule:
    """At NOW the last of so many relists in a row has ended that were due and found nothing new, after one that did."""
    schedule = RelistSchedule(SHORTEST_S, LONGEST_S, Middle())
    for number in range(relists, -1, -1):
        relist(schedule, NOW - number * LONGEST_S, is_surprise=number == relists)
    return schedule


def all_of(*acts: Act) -> Act:
    def act(schedule: RelistSchedule) -> None:
        for each in acts:
            each(schedule)

    return act


def nothing(schedule: RelistSchedule) -> None: ...


def request(schedule: RelistSchedule) -> None:
    schedule.request()


def resync(schedule: RelistSchedule) -> None:
    schedule.resync(NOW)


def back(schedule: RelistSchedule) -> None:
    schedule.podman_is_back()


def fail(schedule: RelistSchedule) -> None:
    schedule.failed(NOW)


def begin(schedule: RelistSchedule) -> None:
    schedule.begun(NOW)


def end(schedule: RelistSchedule) -> None:
    schedule.answered(NOW)
    schedule.plan(NOW, started_at=NOW, is_surprise=False)


@pytest.mark.parametrize(
    ("quiet", "act", "due_in_s"),
    [
        (0, nothing, 10.0),
        (1, nothing, 20.0),
        (4, nothing, 160.0),
        (5, nothing, 300.0),
        (5, request, -NOW),
        (5, resync, 10.0),
        (5, back, 300.0),
        (5, fail, 0.25),
        (5, all_of(fail, fail, fail), 1.0),
        (5, all_of(fail, request), 0.25),
        (5, all_of(fail, resync), 0.25),
        (5, all_of(fail, back), -NOW),
        (5, begin, math.inf),
        (5, all_of(begin, resync), math.inf),
        (5, all_of(begin, request), -NOW),
        (5, all_of(begin, fail), 0.25),
        (5, all_of(begin, request, fail), 0.25),
        (5, all_of(fail, begin, request), -NOW),
        (5, all_of(begin, request, end), -NOW),
        (5, all_of(begin, resync, end), 10.0),
        (5, all_of(request, begin, end), 300.0),
        (1, all_of(begin, end), 20.0),
        (5, all_of(fail, begin, end), 10.0),
    ],
)
def test_a_relist_is_due(quiet: int, act: Act, due_in_s: float) -> None:
    schedule = after_quiet(quiet)
    act(schedule)
    at = NOW + due_in_s
    assert not schedule.is_relist_due(at - TICK_S if at < math.inf else NOW * NOW)
    assert at == math.inf or schedule.is_relist_due(at)


@pytest.mark.parametrize(
    ("took_s", "is_surprise", "again_in_s", "due_in_s"),
    [
        (0.0, False, math.inf, 20.0),
        (0.0, True, math.inf, 10.0),
        (0.0, True, 0.5, 0.5),
        (0.0, True, 60.0, 10.0),
        (2.0, False, math.inf, 40.0 - 2.0),
        (12.0, True, math.inf, 48.0 - 12.0),
    ],
)
def test_what_a_relist_finds_says_when_the_next_one_comes(
    took_s: float, is_surprise: bool, again_in_s: float, due_in_s: float
) -> None:
    schedule = after_quiet(0)
    now = NOW + LONGEST_S
    relist(schedule, now, took_s, is_surprise=is_surprise, again_in_s=again_in_s)
    assert not schedule.is_relist_due(now + due_in_s - TICK_S)
    assert schedule.is_relist_due(now + due_in_s + TICK_S)


def test_without_a_doubt_one_that_finds_nothing_new_is_enough() -> None:
    schedule = RelistSchedule(SHORTEST_S, LONGEST_S, Middle())
    dues = []
    for number, is_settled in enumerate((True, False, True, True)):
        now = NOW + number * LONGEST_S
        schedule.begun(now)
        schedule.answered(now)
        schedule.plan(now, started_at=now, is_surprise=False, is_settled=is_settled)
        schedule.pinged(now + LONGEST_S)
        dues.append(schedule.next_at - now)
    assert dues == [10.0, 10.0, 300.0, 300.0]


@pytest.mark.parametrize(("quiet", "due_in_s"), [(3, 20.0), (5, 300.0)])
def test_a_doubt_is_over_when_relists_are_as_rare_as_they_may_be(quiet: int, due_in_s: float) -> None:
    """From then on a pod that was found half made costs one relist, as before the doubt, and not the whole series."""
    schedule = after_quiet(quiet)
    now = NOW + LONGEST_S
    schedule.begun(now)
    schedule.answered(now)
    schedule.plan(now, started_at=now, is_surprise=False, is_settled=False)
    now += SHORTEST_S
    relist(schedule, now)
    assert not schedule.is_relist_due(now + due_in_s - TICK_S)
    assert schedule.is_relist_due(now + due_in_s)


@pytest.mark.parametrize("act", [fail, resync, all_of(fail, back), all_of(fail, fail, resync)])
def test_before_the_first_relist_there_is_nothing_to_doubt(act: Act) -> None:
    """Our own service starts with us, and does not answer for a moment."""
    schedule = RelistSchedule(SHORTEST_S, LONGEST_S, Middle())
    act(schedule)
    relist(schedule, NOW)
    relist(schedule, NOW + SHORTEST_S)
    assert not schedule.is_relist_due(NOW + SHORTEST_S + LONGEST_S - TICK_S)
    act(schedule)
    relist(schedule, NOW + LONGEST_S)
    assert schedule.is_relist_due(NOW + LONGEST_S + 2 * SHORTEST_S)


def test_the_period_varies_by_a_fifth() -> None:
    schedule = RelistSchedule(SHORTEST_S, LONGEST_S, random.Random(1))
    gaps = []
    for _ in range(100):
        relist(schedule, NOW, is_surprise=True)
        schedule.pinged(NOW)
        gaps.append(schedule.next_at - NOW)
    assert 0.8 * SHORTEST_S <= min(gaps) < 0.85 * SHORTEST_S
    assert 1.15 * SHORTEST_S < max(gaps) <= 1.2 * SHORTEST_S


def test_a_sign_of_life_is_asked_for_when_nothing_else_was_and_podman_is_not_down() -> None:
    schedule = after_quiet(5)
    for asked_at in (NOW, NOW + LIVENESS_PERIOD_S):
        assert schedule.next_at == asked_at + LIVENESS_PERIOD_S
        assert not schedule.is_ping_due(schedule.next_at - TICK_S)
        assert schedule.is_ping_due(schedule.next_at)
        schedule.pinged(schedule.next_at)
    schedule.failed(NOW + 60.0)
    assert schedule.is_down
    assert not schedule.is_ping_due(NOW + 1000.0)
    assert schedule.next_at == NOW + 60.25
    schedule.begun(NOW + 61.0)
    schedule.answered(NOW + 62.0)
    assert not schedule.is_down
    assert schedule.next_at == NOW + 62.0 + LIVENESS_PERIOD_S
