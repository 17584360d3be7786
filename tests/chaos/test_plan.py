"""The plan of a storm follows from its seed, and spares the calm."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.chaos.plan import ROLES, Kind, make_plan

DURATION_S = 600.0
PODS = 20


def test_the_same_seed_gives_the_same_plan() -> None:
    assert make_plan(7, DURATION_S, PODS) == make_plan(7, DURATION_S, PODS)
    assert make_plan(7, DURATION_S, PODS) != make_plan(8, DURATION_S, PODS)


@pytest.mark.parametrize("seed", range(20))
def test_only_what_is_there_is_hit(seed: int) -> None:
    plan = make_plan(seed, DURATION_S, PODS)
    there = {*plan.stormy, *ROLES, ""}
    for fault in plan.faults:
        if fault.kind is Kind.ADD:
            assert fault.target not in there, "a name comes only once"
            there.add(fault.target)
        assert fault.target in there, fault
        if fault.kind is Kind.DELETE:
            there.remove(fault.target)
    assert there.isdisjoint(plan.calm)


def test_every_kind_comes_in_its_time() -> None:
    plan = make_plan(1, DURATION_S, PODS)
    assert {fault.kind for fault in plan.faults} == set(Kind)
    assert {fault.target for fault in plan.faults} >= ROLES.keys()
    assert all(one.at_s <= other.at_s for one, other in pairwise(plan.faults))
    assert all(0 < fault.at_s < DURATION_S for fault in plan.faults)
