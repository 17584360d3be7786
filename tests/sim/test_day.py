"""A busy day leaves nothing behind, and whoever looks at it would see if it did."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest.mock import patch

import pytest

from supervisor.pods.parts import KnownPods
from supervisor.record.recorder import EventRecorder
from supervisor.record.status_manager import StatusManager
from tests.sim.day import Options, a_day


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hours_of_churn_leave_nothing_behind() -> None:
    rows = a_day(Options(pods=240, hours=6.0, rounds=3, at_once=30))
    assert sum(row.restarts for row in rows) > 500
    assert sum(row.pulls for row in rows) > 100
    assert sum(row.log_bytes for row in rows) > 1_000_000
    last = rows[-1].left
    assert (last.events, last.containers, last.resources) == (0, 0, 0)
    assert list(last.beyond(rows[0].left)) == []


def _keeps_something(self: StatusManager, uid: str, original: Any = StatusManager.gone) -> Any:
    vars(self).setdefault("left", []).append([[number] for number in range(10)])
    return original(self, uid)


LEAKS: Final[Mapping[str, AbstractContextManager[Any]]] = {
    "resources": patch.object(KnownPods, "forget", lambda self, uid: None),
    "events": patch.object(EventRecorder, "expire", lambda self, wall: []),
    "objects": patch.object(StatusManager, "gone", _keeps_something),
}


@pytest.mark.slow
@pytest.mark.parametrize("figure", LEAKS)
def test_what_is_never_forgotten_is_seen(figure: str) -> None:
    with LEAKS[figure]:
        first, last = a_day(Options(pods=60, hours=1.0, rounds=2, at_once=8))
    assert figure in " ".join(last.left.beyond(first.left))
