from __future__ import annotations

from typing import Any

import pytest

from tests.support.runtime_values import inspected, listed
from workers.containers.runs import is_run_of, is_same_run
from workers.pleg.relist import to_inspect

EXITED = {"state": "exited", "pid": 0, "exited_at": 150.0}


@pytest.mark.parametrize(
    ("was", "shown", "same"),
    [
        ({}, {}, True),
        ({"state": "exited", "pid": 0, "finished_at": 150.7}, EXITED, True),
        ({}, EXITED, False),
        ({"state": "stopped", "pid": 0, "finished_at": 150.7}, EXITED, False),
        ({}, {"started_at": 102.0}, False),
        ({}, {"pid": 78}, False),
        ({"state": "exited", "pid": 0, "finished_at": 150.7}, {**EXITED, "exited_at": 151.0}, False),
        ({"state": "created", "pid": 0, "started_at": 0.0}, {"state": "created", "pid": 0, "started_at": 0.0}, False),
        ({"state": "removing"}, {"state": "removing"}, False),
        ({"state": "paused"}, {"state": "paused"}, False),
        ({"state": "stopping"}, {"state": "stopping"}, False),
    ],
)
def test_an_inspect_of_earlier_counts_for_the_same_run_in_a_lasting_state(
    was: dict[str, Any], shown: dict[str, Any], same: bool
) -> None:
    known, seen = inspected("c1", **was), listed("c1", **shown)
    assert is_same_run(known, seen) is same
    assert to_inspect([seen], {"c1": known}) == (() if same else ("c1",))


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ({}, True),
        (EXITED, True),
        ({"state": "stopped", "pid": 0}, True),
        ({"pid": 4243}, False),
        ({"started_at": 130.0}, False),
        (EXITED | {"started_at": 130.0}, False),
        ({"state": "removing", "pid": 0}, False),
    ],
)
def test_a_list_shows_the_run_that_was_inspected_when_nobody_has_started_another(
    shown: dict[str, Any], same: bool
) -> None:
    assert is_run_of(inspected("c1"), listed("c1", **shown)) is same
