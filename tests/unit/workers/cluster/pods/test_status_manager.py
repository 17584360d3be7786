"""Statuses of pods that the server is told, and when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.workers.cluster.pods.pods import known
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.status_manager import (
    RECONCILE_S,
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
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}), 0.0)
    assert patch(statuses) == {"phase": "Failed"}


def test_what_nobody_waits_for_waits_for_more(statuses: StatusManager) -> None:
    statuses.changed(known(2, status={"phase": "Running", "startTime": STARTED}))
    statuses.report_plain("u1", {**RUNNING, "hostIP": "192.0.2.1"}, 10.0)
    assert statuses.due("u1", 10.25) == (None, SETTLE_S - 0.25)
    assert patch(statuses, 10.0 + SETTLE_S) == {"hostIP": "192.0.2.1"}


def test_a_status_that_somebody_else_has_changed_is_put_right(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}), 0.0)
    assert patch(statuses) == {}
    statuses.changed(known(3, status={"phase": "Unknown", "startTime": STARTED}))
    assert statuses.due("u1", 4.0) == (None, RECONCILE_S - 4.0), "in the pace of upstream's batch"
    assert patch(statuses, RECONCILE_S) == {"phase": "Running"}


def test_two_nodes_that_overwrite_each_other_do_so_in_a_pace(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    patches, version, now = 0, 2, 0.0
    while now <= 60.0:
        if patch(statuses, now):
            patches += 1
            statuses.patched("u1", known(version, status={"phase": "Running", "startTime": STARTED}), now)
        statuses.changed(known(version + 1, status={"phase": "Pending", "startTime": STARTED}))
        version, now = version + 2, now + 0.25
    assert patches == 7


def test_a_status_of_our_own_does_not_wait_for_the_pace(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}), 0.0)
    statuses.changed(known(3, status={"phase": "Unknown", "startTime": STARTED}))
    statuses.report_plain("u1", {**RUNNING, "phase": "Failed"}, 1.0)
    assert patch(statuses, 1.0) == {"phase": "Failed"}


def test_the_last_delete_does_not_wait_for_the_pace(statuses: StatusManager) -> None:
    ended = {**RUNNING, "phase": "Succeeded"}
    statuses.report_plain("u1", ended, 0.0)
    statuses.released("u1")
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Succeeded", "startTime": STARTED}), 0.0)
    overwritten = known(3, deletionTimestamp=STARTED, status={"phase": "Running", "startTime": STARTED})
    statuses.changed(overwritten)
    assert statuses.due("u1", 1.0)[0] == DeletePodFinally(overwritten)


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
    statuses.patched("u1", kept, 0.0)
    assert statuses.due("u1", 0.0)[0] == DeletePodFinally(kept)
    statuses.failed("u1", 0.0)
    statuses.report_plain("u1", {**own, "message": "longer"}, 0.0)
    assert patch(statuses, RETRY_S) == {"message": "longer"}
    statuses.patched("u1", kept, 0.0)
    statuses.changed(known(3, status={"phase": "Failed", "startTime": STARTED, "message": "other"}))
    assert patch(statuses, RETRY_S) == {"message": "longer"}


def test_an_older_version_than_the_last_answer_says_nothing(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(9, status={"phase": "Running", "startTime": STARTED}), 0.0)
    statuses.changed(known(8))
    assert patch(statuses) == {}
    statuses.replaced([known(8)])
    assert patch(statuses, RECONCILE_S), "a list of an older store counts"


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
    statuses.patched("u1", answer, 0.0)
    assert statuses.due("u1", 0.0)[0] == DeletePodFinally(answer)
    statuses.lost("u1")
    statuses.deleted("u1")
    assert statuses.uids() == ()


def test_a_pod_that_has_ended_and_is_wanted_stays(statuses: StatusManager) -> None:
    statuses.report_plain("u1", RUNNING, 0.0)
    assert patch(statuses)
    statuses.patched("u1", known(2, status={"phase": "Running", "startTime": STARTED}), 0.0)
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


ENDED = {"phase": "Failed", "startTime": STARTED}


def ended_pod(version: int, exit_code: int, **spec: Any) -> KnownPod:
    status = {**ENDED, "containerStatuses": [main("terminated", exitCode=exit_code)]}
    container = {"name": "main", "image": "busybox", **spec.pop("container", {})}
    found = msgspec.json.encode({"containers": [container], **spec})
    return msgspec.structs.replace(known(version, status=status), spec=msgspec.Raw(found))


def main(state: str, **detail: Any) -> dict[str, Any]:
    return {"name": "main", "state": {state: detail}}


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
RULED = {"restartPolicy": "Never", "restartPolicyRules": [RULE]}


@pytest.mark.parametrize(
    ("exit_code", "spec", "is_reported"),
    [
        (0, {"restartPolicy": "Never"}, False),
        (1, {"restartPolicy": "Never"}, False),
        (0, {"restartPolicy": "OnFailure"}, False),
        (1, {"restartPolicy": "OnFailure"}, True),
        (0, {"restartPolicy": "Always"}, True),
        (3, {"restartPolicy": "Never", "container": RULED}, True),
        (4, {"restartPolicy": "Never", "container": RULED}, False),
    ],
)
def test_an_end_that_is_final_is_not_left(
    exit_code: int, spec: dict[str, Any], *, is_reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Upstream keeps the status that the server has, and says so; the server would refuse the other one."""
    statuses = StatusManager()
    statuses.changed(ended_pod(1, exit_code, **spec))
    for state in ("waiting", "running"):
        statuses.report_plain("u1", {**ENDED, "hostIP": "192.0.2.1", "containerStatuses": [main(state)]}, 0.0)
        action, again_s = statuses.due("u1", SETTLE_S)
        assert isinstance(action, PatchStatus) is is_reported
        assert again_s == 0.0, "nothing is tried again before something changes"
        statuses.failed("u1", 0.0 - RETRY_S)
    said = [record.message for record in caplog.records if "illegal transition" in record.message]
    assert len(said) == (0 if is_reported else 1), "once"


def test_a_status_that_was_withheld_is_told_when_the_container_has_ended_again() -> None:
    statuses = StatusManager()
    statuses.changed(ended_pod(1, 0, restartPolicy="Never"))
    statuses.report_plain("u1", {**ENDED, "containerStatuses": [main("running")]}, 0.0)
    assert statuses.due("u1", SETTLE_S) == (None, 0.0)
    statuses.report_plain("u1", {**ENDED, "containerStatuses": [main("terminated", exitCode=137)]}, 0.0)
    assert "containerStatuses" in patch(statuses, SETTLE_S)


def test_a_withheld_status_does_not_keep_a_deleted_pod() -> None:
    statuses = StatusManager()
    pod = ended_pod(1, 0, restartPolicy="Never")
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=STARTED)
    statuses.changed(msgspec.structs.replace(pod, metadata=metadata))
    statuses.report_plain("u1", {**ENDED, "containerStatuses": [main("running")]}, 0.0)
    statuses.released("u1")
    action, _ = statuses.due("u1", SETTLE_S)
    assert isinstance(action, DeletePodFinally)
