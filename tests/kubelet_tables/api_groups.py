"""Adapters of the groups about updates that an API server takes: the tests' own server is held against them, with which
the node's requests are tested; when a status is sent to one; and how long pods take to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ipc.host.clock import parse_rfc3339
from supervisor.metering import is_stateful, merged_s
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, pod, without_nulls
from tests.support.servers.kube_api.failures import Cause, JsonObject
from tests.support.servers.kube_api.pod_updates import ephemeral_problems, status_problems, update_problems
from workers.cluster.pods.status_manager import status_patch
from workers.cluster.pods.wanted_status import wanted_status

Problems = Callable[[JsonObject, JsonObject], Iterator[Cause]]
_OF_THE_NEW_OBJECT: Final = (
    "for a windows pod",
    "spec.initContainers[0].resizePolicy",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "imageVolumeStatus",
    "a valid label must be",
)
"""Parts of errors about what is wrong with the new object alone."""


def _refused(case: Json, problems: Problems) -> Result:
    """Whether the update is refused, and the words that upstream's test looks for, but for values in Go's form."""
    wanted = case["error_contains"]
    if any(word in error for error in case["errors"] for word in _OF_THE_NEW_OBJECT):
        raise Later("never: rules for the new object alone are those of the node, in ipc/k8s/api/validation")
    if not case["errors"] and _is_nominated_when_bound(case["old"], case["new"]):
        raise Later("never: the gate ClearingNominatedNodeNameAfterBinding is on")
    found = ", ".join(f"{cause.field}: {cause.message}" for cause in problems(case["old"], case["new"]))
    if not case["errors"]:
        return "", found
    return (True, True), (bool(found), _plain(wanted) in found)


def _is_nominated_when_bound(old: Json, new: Json) -> bool:
    was, now = (found["status"].get("nominatedNodeName") for found in (old, new))
    return bool(old["spec"].get("nodeName") and now and now != was)


def _plain(words: str) -> str:
    """The words up to a value, which Go prints."""
    return words.partition(": Inva")[0].partition(" Invalid value: ")[0]


def _status_equal(case: Json) -> Result:
    """Equal is what is not sent."""
    old = case["old"]
    kinds = [condition["type"] for condition in old.get("conditions") or ()]
    if len(kinds) != len(set(kinds)):
        raise Later("never: two conditions of one type, which no server has: it is their key")
    return case["expected"], not status_patch(old, wanted_status(old, case["new"]))


def _set_pod_status(case: Json) -> Result:
    """The cached status in the place of the server's: what is to be there afterwards, and whether it has to be sent.
    Without one it is the pod's own, and times are left out: here a status is dated when it is generated."""
    cached, version = case["cached"], case["version"] or 0
    told = without_nulls(cached if cached is not None else case["pod"].get("status") or {})
    wanted = wanted_status(told, without_nulls(case["status"]))
    is_sent = version == 0 or bool(status_patch(told, wanted))
    shown = _undated if cached is None else without_nulls
    return (shown(case["expected"]), case["expected_version"] > version), (shown(wanted), is_sent)


def _undated(status: Json) -> Json:
    conditions = [
        {name: value for name, value in condition.items() if name != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    undated = {name: value for name, value in status.items() if name not in ("startTime", "conditions")}
    found: Json = without_nulls({**undated, "conditions": conditions})
    return found


def _image_pulling_time(case: Json) -> Result:
    sessions = [(parse_rfc3339(session["start"]), parse_rfc3339(session["end"])) for session in case["sessions"]]
    return round(case["expected_s"], 6), round(merged_s(sessions), 6)


def _is_stateful_pod(case: Json) -> Result:
    return case["expected"], is_stateful(pod({"spec": {"volumes": case["volumes"]}}))


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "validate_pod_update": lambda case: _refused(case, update_problems),
    "validate_pod_status_update": lambda case: _refused(case, status_problems),
    "validate_pod_ephemeral_containers_update": lambda case: _refused(case, ephemeral_problems),
    "status_equal": _status_equal,
    "status_set_pod_status": _set_pod_status,
    "image_pulling_time": _image_pulling_time,
    "is_stateful_pod": _is_stateful_pod,
}
