"""Statuses of pods that the server is told, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.workers.cluster.pods.pods import known
from workers.cluster.pods.status_manager import (
    RETRY_S,
    SETTLE_S,
    DeletePodFinally,
    PatchStatus,
    StatusManager,
)

STARTED = "2026-01-01T00:00:00Z"
RUNNING: dict[str, Any] = {"phase": "Running", "startTime": STARTED, "conditions": []}


@pytest.fixture
def statuses() -> StatusManager:
    made = StatusManager()
    made.changed(known())
    return made


def patch(statuses: StatusManager, now: float = 0.0) -> dict[str, Any]:
    """The patch that is due; empty for none."""
    action, _ = statuses.due("u1", now)
    assert action is None or isinstance(action, PatchStatus)
    return {} if action is None else action.status


def test_a_first_status_is_told_at_once(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert statuses.take_changed() == ("u1",)
    assert patch(statuses) == {"phase": "Running", "startTime": STARTED}


def test_one_request_at_a_time_and_the_newest_status_next(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.report_plain("u1", {**RUNNING, "phase": "Failed"}, 0.0)
    assert patch(statuses) == {}
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}))
    assert patch(statuses) == {"phase": "Failed"}


def test_what_nobody_waits_for_waits_for_more(statuses: StatusManager) -> None:
    statuses.changed(known(2, status={"phase": "Running", "startTime": STARTED}))
    statuses.report_plain("u1", {**RUNNING, "hostIP": "192.0.2.1"}, 10.0)
    assert statuses.due("u1", 10.25) == (None, SETTLE_S - 0.25)
    assert patch(statuses, 10.0 + SETTLE_S) == {"hostIP": "192.0.2.1"}


def test_a_status_that_somebody_else_has_changed_is_put_right(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}))
    assert patch(statuses) == {}
    statuses.changed(known(3, status={"phase": "Unknown", "startTime": STARTED}))
    assert patch(statuses) == {"phase": "Running"}


def test_a_time_that_the_server_writes_as_null_is_no_difference(statuses: StatusManager) -> None:
    lost = {"exitCode": 137, "reason": "ContainerStatusUnknown"}
    status = {"phase": "Running", "startTime": STARTED}
    own = {**status, "containerStatuses": [{"name": "main", "state": {"terminated": lost}}]}
    there = [{"name": "main", "state": {"terminated": {**lost, "startedAt": None, "finishedAt": None}}}]
    statuses.report_plain("u1", own, 0.0)
    statuses.changed(known(2, status={**status, "containerStatuses": there}))
    assert patch(statuses, SETTLE_S) == {}


def test_a_patch_that_changes_nothing_is_not_repeated_until_a_copy_differs(statuses: StatusManager) -> None:
    kept = known(2, deletionTimestamp=STARTED, status={"phase": "Failed", "startTime": STARTED, "message": "cut"})
    own = {**RUNNING, "phase": "Failed", "message": "cut short"}
    statuses.changed(kept)
    statuses.report_plain("u1", own, 0.0)
    statuses.released("u1")
    assert patch(statuses) == {"message": "cut short"}
    statuses.patched("u1", kept)
    assert statuses.due("u1", 0.0)[0] == DeletePodFinally(kept)
    statuses.failed("u1", 0.0)
    statuses.report_plain("u1", {**own, "message": "longer"}, 0.0)
    assert patch(statuses, RETRY_S) == {"message": "longer"}
    statuses.patched("u1", kept)
    statuses.changed(known(3, status={"phase": "Failed", "startTime": STARTED, "message": "other"}))
    assert patch(statuses, RETRY_S) == {"message": "longer"}


def test_an_older_version_than_the_last_answer_says_nothing(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(9, status={"phase": "Running", "startTime": STARTED}))
    statuses.changed(known(8))
    assert patch(statuses) == {}
    statuses.replaced([known(8)])
    assert patch(statuses), "a list of an older store counts"


def test_a_failed_request_is_made_again_later_and_a_lost_pod_is_left_alone(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.failed("u1", 5.0)
    assert statuses.due("u1", 6.0) == (None, RETRY_S - 1.0)
    assert patch(statuses, 5.0 + RETRY_S)
    statuses.lost("u1")
    assert statuses.due("u1", 100.0) == (None, 0.0)
    statuses.changed(known(2))
    assert patch(statuses, 100.0), "unless the server has it after all"


def test_the_last_delete_comes_after_the_last_status_and_only_of_a_deleted_pod(statuses: StatusManager) -> None:
    deleted = known(2, deletionTimestamp=STARTED, status={"phase": "Running", "startTime": STARTED})
    statuses.report_plain("u1", RUNNING, 0.0)
    statuses.changed(deleted)
    assert statuses.due("u1", 0.0)[0] is None, "something of it runs"
    statuses.report_plain("u1", {**RUNNING, "phase": "Succeeded"}, 0.0)
    statuses.released("u1")
    assert patch(statuses) == {"phase": "Succeeded"}
    answer = known(3, deletionTimestamp=STARTED, status={"phase": "Succeeded", "startTime": STARTED})
    statuses.patched("u1", answer)
    assert statuses.due("u1", 0.0)[0] == DeletePodFinally(answer)
    statuses.lost("u1")
    statuses.deleted("u1")
    assert statuses.uids() == ()


def test_a_pod_that_has_ended_and_is_wanted_stays(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}))
    statuses.released("u1")
    assert statuses.due("u1", 0.0) == (None, 0.0)


def test_a_deleted_pod_of_which_the_master_knows_nothing_is_let_go() -> None:
    statuses = StatusManager()
    statuses.replaced([known(deletionTimestamp=STARTED), known(uid="u2", deletionTimestamp=STARTED)])
    assert statuses.due("u1", 0.0)[0] is None, "the master has not answered yet"
    statuses.release_unknown({"u2"})
    assert isinstance(statuses.due("u1", 0.0)[0], DeletePodFinally)
    assert statuses.due("u2", 0.0)[0] is None


def test_a_mirror_s_delete_is_not_the_status_manager_s_business() -> None:
    statuses = StatusManager()
    statuses.changed(known(deletionTimestamp=STARTED, annotations={"kubernetes.io/config.mirror": "h"}))
    statuses.released("u1")
    assert statuses.due("u1", 0.0) == (None, 0.0)
