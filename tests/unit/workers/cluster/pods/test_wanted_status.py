"""The status that the server is to have: what is the node's to say, beside what others have said."""

from __future__ import annotations

from typing import Any

from ipc.k8s.api.v1.status import PodCondition, PodStatus
from workers.cluster.pods.wanted_status import plain_status, wanted_status

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def condition(type_: str, status: str = "True", at: str = LATE, **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, "lastTransitionTime": at, **more}


def test_what_others_have_said_stays() -> None:
    gate = condition("example.com/gate")
    server = {"nominatedNodeName": "n", "conditions": [gate], "qosClass": "BestEffort"}
    wanted = wanted_status(server, {"phase": "Running", "conditions": [condition("Ready")]})
    assert wanted["nominatedNodeName"] == "n"
    assert wanted["qosClass"] == "BestEffort"
    assert wanted["conditions"] == [condition("Ready"), gate]


def test_a_condition_that_only_a_kubelet_sets_goes_when_it_is_not_true_any_more() -> None:
    server = {"conditions": [condition("PodResizeInProgress"), condition("DisruptionTarget")]}
    assert wanted_status(server, {"conditions": []})["conditions"] == [condition("DisruptionTarget")]


def test_the_scheduler_s_condition_gets_the_generation_that_was_seen_and_nothing_else() -> None:
    theirs = condition("PodScheduled", at=EARLY, reason="Bound")
    own = condition("PodScheduled", observedGeneration=3)
    assert wanted_status({"conditions": [theirs]}, {"conditions": [own]})["conditions"] == [
        {**theirs, "observedGeneration": 3}
    ]


def test_a_transition_has_the_time_that_the_server_knows_until_there_is_another() -> None:
    server = {"conditions": [condition("Ready", at=EARLY)]}
    assert wanted_status(server, {"conditions": [condition("Ready")]})["conditions"][0]["lastTransitionTime"] == EARLY
    down = [condition("Ready", "False")]
    assert wanted_status(server, {"conditions": down})["conditions"] == down


def test_a_terminal_phase_is_never_left_and_a_start_never_moved() -> None:
    server = {"phase": "Failed", "reason": "Evicted", "message": "m", "startTime": EARLY}
    wanted = wanted_status(server, {"phase": "Running", "startTime": LATE, "conditions": []})
    assert wanted == server
    ended = wanted_status({"phase": "Failed"}, {"phase": "Succeeded", "conditions": []})
    assert ended["phase"] == "Failed"


def test_a_static_pod_s_status_observes_no_generation() -> None:
    ready = PodCondition(type="Ready", status="True", observed_generation=2)
    status = PodStatus(phase="Running", observed_generation=2, conditions=(ready,))
    assert plain_status(status)["observedGeneration"] == 2
    static = plain_status(status, is_static=True)
    assert "observedGeneration" not in static
    assert "observedGeneration" not in static["conditions"][0]
