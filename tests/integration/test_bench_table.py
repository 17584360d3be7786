"""The table of `make bench`: what its rows say about figures."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.bench.budgets import BUDGETS, DIALER, LEFT_ALONE, LOOKED_AT, budget
from tests.bench.table import (
    BESIDE,
    EMPTY,
    PLANS,
    TABLE,
    Aim,
    Better,
    Outcome,
    Plan,
    Row,
    Side,
    as_json,
    as_text,
    key,
    medians,
    outcome,
    quantile,
)

RATE = Row(name="starts", plan=EMPTY, figure="start.rate", unit="pods/s", better=Better.HIGHER, aim=Aim(0.95, True))
MEMORY = Row(name="PSS", plan=EMPTY, figure="idle.pss.all", unit="MiB", aim=Aim(60, per_pod=0.5))


def measured(row: Row, raw: list[list[float]], rootlet: list[list[float]]) -> Outcome:
    return outcome(row, {Side.RAW: {row.figure: raw}, Side.ROOTLET: {row.figure: rootlet}})


def test_every_row_has_a_name_of_its_own_and_a_plan_that_is_measured() -> None:
    names = [(row.plan, row.name) for row in TABLE]
    assert len(names) == len(set(names))
    assert {row.plan for row in TABLE} == set(PLANS)
    assert {plan.others for plan in PLANS} == {0, 300}


@pytest.mark.parametrize(
    ("raw", "rootlet", "ratio", "met"),
    [
        ([[10.0], [20.0], [10.0]], [[9.6], [10.0], [9.7]], 0.96, True),
        ([[10.0], [10.0], [10.0]], [[9.4], [9.0], [12.0]], 0.94, False),
    ],
)
def test_a_ratio_is_the_median_of_the_rounds_and_not_that_of_the_medians(
    raw: list[list[float]], rootlet: list[list[float]], ratio: float, met: bool
) -> None:
    found = measured(RATE, raw, rootlet)
    assert found.ratio == pytest.approx(ratio)
    assert found.met is met


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        ([0.9, 0.8, 0.7, 0.6, 0.5], "0.70"),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], "0.65 (0.40 to 0.90)"),
        ([1.0, 0.8, 0.7, 0.6, 0.5, 0.4], "0.65 (0.40 to 1.00), no difference seen"),
        ([9.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.1], "0.60 (0.30 to 0.90)"),
    ],
)
def test_a_ratio_stands_with_its_interval_from_six_rounds_on(ratios: list[float], told: str) -> None:
    """By the binomial distribution: all of six figures, from nine on without those at both ends."""
    (row,) = (
        line
        for line in as_text([measured(RATE, [[1.0]] * len(ratios), [[ratio] for ratio in ratios])]).splitlines()
        if line.startswith("starts")
    )
    assert f"  {told}  " in row


def test_a_limit_grows_with_the_pods_and_holds_for_what_is_measured_itself() -> None:
    assert measured(MEMORY, [], [[90.0]]).met is True
    assert measured(MEMORY, [], [[90.1]]).met is False
    assert measured(MEMORY, [], [[90.1]]).aim == "≤ 90"


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    found = measured(RATE, [[1.0]], [])
    assert (found.met, found.verdict, found.ratio, found.rootlet) == (None, "-", None, None)


def test_a_plan_of_which_nothing_was_measured_is_not_shown() -> None:
    beside = msgspec.structs.replace(RATE, plan=BESIDE)
    text = as_text([measured(RATE, [[1.0]], []), measured(beside, [], [])])
    assert EMPTY.name in text
    assert BESIDE.name not in text


def test_a_detail_is_shown_where_it_has_a_figure() -> None:
    detail = msgspec.structs.replace(MEMORY, name="of it", detail=True)
    shown = as_text([measured(RATE, [[1.0]], [[1.0]]), measured(detail, [], [[1.0]])])
    hidden = as_text([measured(RATE, [[1.0]], [[1.0]]), measured(detail, [], [])])
    assert ("of it" in shown, "of it" in hidden) == (True, False)


@pytest.mark.parametrize(("name", "state"), [("nobody looking", LEFT_ALONE), ("being looked at", LOOKED_AT)])
def test_the_memory_of_a_process_has_its_budget_beside_it(name: str, state: str) -> None:
    budgets = {row.name.rpartition(": ")[2]: row.aim for row in TABLE if row.name.startswith(f"PSS, {name}: ")}
    with_budget = {role: aim.limit_of(EMPTY) for role, aim in budgets.items() if aim is not None}
    assert with_budget == pytest.approx(
        {role: budget(state, role, EMPTY.pods) for role in BUDGETS[state] if role != DIALER}
    )


def test_a_quantile_counts_within_each_round() -> None:
    row = msgspec.structs.replace(MEMORY, part=0.99)
    found = measured(row, [], [[float(n) for n in range(100)], [1.0], []])
    assert found.rootlet is not None
    assert (found.rootlet.low, found.rootlet.high) == (1.0, 98.0)
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_a_smaller_plan_has_a_smaller_population_of_each_sort() -> None:
    assert BESIDE.scaled(20) == Plan(BESIDE.name, 3, 15)
    assert EMPTY.scaled(1000) == Plan(EMPTY.name, 2, 0)


def test_two_runs_are_compared_row_by_row() -> None:
    before = [measured(RATE, [[10.0]], [[5.0]]), measured(MEMORY, [], [])]
    written = as_json(before, {"load": "2 CPUs"})
    assert json.loads(written)["load"] == "2 CPUs"
    assert json.loads(written)["rows"][0]["verdict"] == "missed"
    known = medians(written)
    assert known == {key(before[0]): 5.0}
    text = as_text([measured(RATE, [[10.0]], [[9.9]]), measured(MEMORY, [], [[61.0]])], known)
    starts, memory = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("starts", "PSS"))
    assert starts.split()[-2:] == ["met", "5"]
    assert memory.split()[-2:] == ["met", "-"]
