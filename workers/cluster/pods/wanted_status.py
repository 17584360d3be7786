"""The status that the server is to have of a pod, from the one that it has and the one that is true (mergePodStatus and
updateStatusInternal, pkg/kubelet/status/status_manager.go). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.api.v1.status import TERMINAL_PHASES, PodStatus

OWNED_CONDITIONS: Final = frozenset(
    {
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodResizePending",
        "PodResizeInProgress",
        "AllContainersRestarting",
    }
)
"""Types that only a kubelet sets (pkg/kubelet/types/pod_status.go, PodConditionsByKubelet)."""
SCHEDULED: Final = "PodScheduled"
"""The scheduler's condition, of which the kubelet sets ``observedGeneration``."""
_OWNED_FIELDS: Final = (
    "observedGeneration",
    "phase",
    "reason",
    "message",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
    "qosClass",
    "allocatedResources",
    "resources",
)
_PHASE_FIELDS: Final = ("phase", "reason", "message")


def plain_status(status: PodStatus, *, is_static: bool = False) -> JsonObject:
    """The status as plain JSON data. A static pod has no generation, and its status observes none."""
    value: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
    if is_static:
        value.pop("observedGeneration", None)
        value["conditions"] = [
            {name: item for name, item in condition.items() if name != "observedGeneration"}
            for condition in value.get("conditions", ())
        ]
    return value


def wanted_status(server: Mapping[str, JsonValue], own: Mapping[str, JsonValue]) -> JsonObject:
    """The server's status with everything in it that is the node's to say. A terminal phase is never left, a start time
    never changed."""
    wanted = {name: value for name, value in server.items() if name not in _OWNED_FIELDS}
    wanted |= {name: own[name] for name in _OWNED_FIELDS if own.get(name) is not None}
    if server.get("qosClass") and not own.get("qosClass"):
        wanted["qosClass"] = server["qosClass"]
    if server.get("startTime"):
        wanted["startTime"] = server["startTime"]
    if server.get("phase") in TERMINAL_PHASES and own.get("phase") != server["phase"]:
        wanted |= {name: server.get(name) for name in _PHASE_FIELDS}
    wanted["conditions"] = list(_conditions(server.get("conditions") or (), own.get("conditions") or ()))
    return {name: value for name, value in wanted.items() if value not in (None, [], {}, "")}


def _conditions(server: Iterable[JsonObject], own: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The node's, in its order, then those of others."""
    there = {condition["type"]: condition for condition in server}
    for condition in own:
        known = there.get(condition["type"])
        if known is not None and condition["type"] == SCHEDULED:
            observed = condition.get("observedGeneration")
            yield known if observed is None else {**known, "observedGeneration": observed}
        elif known is not None and known.get("status") == condition["status"] and known.get("lastTransitionTime"):
            yield {**condition, "lastTransitionTime": known["lastTransitionTime"]}
        else:
            yield condition
    ours = {condition["type"] for condition in own}
    yield from (condition for type_, condition in there.items() if type_ not in ours and type_ not in OWNED_CONDITIONS)
