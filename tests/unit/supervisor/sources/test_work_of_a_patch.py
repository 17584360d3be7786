"""Cost of a patch of a large pod: lines of this project's code for each volume more."""

from __future__ import annotations

import json
from functools import partial
from typing import Final

import pytest

from supervisor.sources.applied_changes import changed_object
from tests.support.manifests import ORIGIN, pod
from tests.support.work import work_of

FEW: Final = 100
MANY: Final = 500


def patch_of(volumes: int, *, ordered: bool, **source: object) -> bytes:
    """A strategic merge patch, as kubectl's apply sends it where ``ordered``."""
    names = [{"name": f"v{number}"} for number in range(volumes)]
    order = {"$setElementOrder/volumes": names} if ordered else {}
    return json.dumps({"spec": {**order, "volumes": [{**name, **source} for name in names]}}).encode()


@pytest.mark.parametrize(
    ("source", "ordered", "most"),
    [
        ({}, False, 130),
        ({}, True, 175),
        ({"emptyDir": {"medium": None}}, False, 190),
        ({"emptyDir": {"medium": None}}, True, 285),
        ({"hostPath": {"path": "/a"}}, False, 230),
    ],
)
def test_a_volume_more_costs_no_look_at_each_source_that_it_does_not_have(
    source: dict[str, object], ordered: bool, most: int
) -> None:
    """A volume has one of thirty: in each step from the patch to a valid pod those looks would cost more than all else.
    Nor is the text of the patch looked at byte by byte."""
    present = pod()
    changed_object(present, "strategic", patch_of(1, ordered=ordered, **source), ORIGIN)  # tables of types are made
    patches = [patch_of(volumes, ordered=ordered, **source) for volumes in (FEW, MANY)]
    few, many = (work_of(partial(changed_object, present, "strategic", patch, ORIGIN)) for patch in patches)
    assert (many - few) / (MANY - FEW) < most
