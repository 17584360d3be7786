"""The steps of `make bench`: what is measured how often, beside which pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.bench.schedule import Phase, Step, schedules
from tests.bench.table import BESIDE, EMPTY, MANY, PLANS, TABLE

ALL = [plan.name for plan in PLANS]
ROUNDS = 5


def running(steps: Sequence[Step]) -> list[tuple[Step, frozenset[str]]]:
    """Each step, and the plans whose pods Rootlet runs when it begins."""
    there: set[str] = set()
    found = []
    for step in steps:
        found.append((step, frozenset(there)))
        if step.phase is Phase.START:
            assert step.plan not in there
            there.add(step.plan)
        elif step.phase is Phase.STOP:
            there.remove(step.plan)
    assert there == set(), "nothing is left"
    return found


def test_the_population_comes_and_goes_once_and_is_there_in_all_rounds_beside_it() -> None:
    (_, steps) = schedules(ALL, ROUNDS)
    counted = Counter((step.plan, step.phase) for step in steps)
    assert counted[MANY.name, Phase.START] == counted[MANY.name, Phase.STOP] == counted[MANY.name, Phase.IDLE] == 1
    assert counted[MANY.name, Phase.RAW] == 2
    of_many = [step.phase for step in steps if step.plan == MANY.name and step.phase is not Phase.RESPAWN]
    assert of_many == [Phase.GROW, Phase.RAW, Phase.START, Phase.IDLE, Phase.STOP, Phase.RAW]
    assert counted[MANY.name, Phase.RESPAWN] == ROUNDS
    assert {counted[BESIDE.name, phase] for phase in (Phase.RAW, Phase.START, Phase.RESTART, Phase.STOP)} == {ROUNDS}
    assert all(MANY.name in there for step, there in running(steps) if step.plan == BESIDE.name)


@pytest.mark.parametrize("plans", [ALL, [EMPTY.name], [BESIDE.name], [MANY.name], [EMPTY.name, MANY.name]])
def test_everything_is_measured_beside_what_its_plan_says(plans: list[str]) -> None:
    for steps in schedules(plans, ROUNDS):
        for step, there in running(steps):
            if step.phase in (Phase.GROW, Phase.RAW, Phase.PLAIN):
                assert there == ({MANY.name} if step.plan == BESIDE.name else frozenset())
            if step.phase in (Phase.IDLE, Phase.RESPAWN):
                assert there == {step.plan}


def test_the_two_sides_take_turns_in_coming_first() -> None:
    """Also where few phases are wanted."""
    for plan in (EMPTY, BESIDE):
        (steps,) = schedules([plan.name], ROUNDS, [Phase.RAW, Phase.FILTERED])
        first = {number: next(s.phase for s in steps if (s.plan, s.round) == (plan.name, number)) for number in (1, 2)}
        assert first == {1: Phase.RAW, 2: Phase.START}
        last = [step.phase for step in steps if (step.plan, step.round) == (plan.name, 2)]
        assert last == [Phase.START, Phase.STOP, Phase.FILTERED, Phase.RAW]


def test_only_the_plans_that_are_wanted_are_measured() -> None:
    assert {step.plan for steps in schedules([EMPTY.name], 1) for step in steps} == {EMPTY.name}
    (steps,) = schedules([BESIDE.name], 1)
    assert {step.phase for step in steps if step.plan == MANY.name} == {Phase.START, Phase.STOP}
    assert list(schedules([], 1)) == []


def test_only_the_phases_that_are_wanted_are_measured_on_pods_that_come_and_go() -> None:
    (steps,) = schedules([BESIDE.name], ROUNDS, [Phase.RESTART])
    there = [there for step, there in running(steps) if step.phase is Phase.RESTART]
    assert there == [frozenset({BESIDE.name, MANY.name})] * ROUNDS
    assert {step.phase for step in steps} == {Phase.START, Phase.RESTART, Phase.STOP}


def test_every_row_of_the_table_is_measured() -> None:
    measured = {(step.plan, step.phase) for steps in schedules(ALL, 1) for step in steps}
    also = {"looked": Phase.START}
    for row in TABLE:
        assert (row.plan.name, also.get(row.phase) or Phase(row.phase)) in measured, row.name
