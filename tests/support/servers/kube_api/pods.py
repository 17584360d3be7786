"""Acts of the API server on pods: defaults, deletion with grace, bindings, evictions, and what may change
(pkg/registry/core/pod/strategy.go, storage/storage.go, storage/eviction.go)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.failures import Cause, JsonObject, invalid, required
from tests.support.servers.kube_api.pod_updates import MIRROR, ephemeral_problems, status_problems, update_problems
from tests.support.servers.kube_api.store import Store

_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
_SPEC_DEFAULTS: Final[JsonObject] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
}
_CONTAINER_DEFAULTS: Final[JsonObject] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_CONTAINERS: Final = ("initContainers", "containers")
TOPOLOGY: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def with_defaults(pod: JsonObject) -> JsonObject:
    """The pod as the server stores it when it is created."""
    made = copy.deepcopy(pod)
    spec = made.setdefault("spec", {})
    for name, value in _SPEC_DEFAULTS.items():
        spec.setdefault(name, copy.deepcopy(value))
    is_mirror = MIRROR in (made.get("metadata", {}).get("annotations") or {})
    if not is_mirror:
        spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
        spec.setdefault("tolerations", []).extend(copy.deepcopy(_TOLERATIONS))
    for container in (one for kind in _CONTAINERS for one in spec.get(kind) or ()):
        for name, value in _CONTAINER_DEFAULTS.items():
            container.setdefault(name, copy.deepcopy(value))
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    made["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
    return made


def _pull_policy(image: str) -> str:
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return "Always" if "@" not in image and tag in ("", "latest") else "IfNotPresent"


def _qos_class(spec: JsonObject) -> str:
    """pkg/apis/core/v1/helper/qos, of CPU and memory."""
    every = [one.get("resources") or {} for kind in _CONTAINERS for one in spec.get(kind) or ()]
    told = [(found.get("limits") or {}, found.get("requests") or {}) for found in every]
    if not any(limits or requests for limits, requests in told):
        return "BestEffort"
    guaranteed = all(
        {"cpu", "memory"} <= limits.keys()
        and all((limits | requests)[name] == limits[name] for name in ("cpu", "memory"))
        for limits, requests in told
    )
    return "Guaranteed" if guaranteed else "Burstable"


def check_new(pod: JsonObject) -> None:
    """The part of ValidatePodCreate that hostile tests need. Raises Refusal."""
    containers = pod.get("spec", {}).get("containers")
    if not containers:
        raise invalid("Pod", pod["metadata"].get("name", ""), [required("spec.containers")])
    causes = [
        required(f"spec.containers[{index}].{name}")
        for index, container in enumerate(containers)
        for name in ("name", "image")
        if not container.get(name)
    ]
    if causes:
        raise invalid("Pod", pod["metadata"].get("name", ""), causes)


def updated(before: JsonObject, after: JsonObject) -> JsonObject:
    """A plain update: the status stays, of the spec little may change. Raises Refusal."""
    made = copy.deepcopy(after)
    made["status"] = copy.deepcopy(before.get("status", {}))
    _refuse(before, update_problems(before, made))
    return with_generation(before, made)


def _refuse(pod: JsonObject, problems: Iterator[Cause]) -> None:
    """Raises Refusal where there are any."""
    if causes := list(problems):
        raise invalid("Pod", pod["metadata"]["name"], causes)


def with_generation(before: JsonObject, after: JsonObject) -> JsonObject:
    """One more generation where the spec differs."""
    generation = before["metadata"].get("generation", 1)
    after["metadata"]["generation"] = generation + (before["spec"] != after["spec"])
    return after


def status_updated(before: JsonObject, after: JsonObject) -> JsonObject:
    """An update of the status subresource: spec, owners and the date of deletion stay. Raises Refusal."""
    made = copy.deepcopy(after)
    made["spec"] = copy.deepcopy(before["spec"])
    for name in ("ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        made["metadata"].pop(name, None)
        if name in before["metadata"]:
            made["metadata"][name] = before["metadata"][name]
    _refuse(before, status_problems(before, made))
    return made


def deleted(store: Store, pod: JsonObject, grace_s: int | None, now: datetime) -> JsonObject:
    """The pod after a DELETE: with a date until which it has to go, or gone (rest.BeforeDelete)."""
    metadata = pod["metadata"]
    grace = _grace(pod, grace_s)
    left = metadata.get("deletionGracePeriodSeconds")
    if left and (grace_s is None or grace >= left):
        return pod
    if left is None:
        begun = now
        metadata["generation"] = metadata.get("generation", 1) + 1
    else:
        begun = datetime.fromisoformat(metadata["deletionTimestamp"]) - timedelta(seconds=left)
    metadata["deletionTimestamp"] = _rfc3339(begun + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if not grace and not metadata.get("finalizers"):
        return store.delete("pods", metadata["namespace"], metadata["name"], pod)
    return store.update(pod)


def _grace(pod: JsonObject, told: int | None) -> int:
    """podStrategy.CheckGracefulDelete: seconds."""
    if told == 0 or not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    period: Any = pod["spec"].get("terminationGracePeriodSeconds", 30) if told is None else told
    return 1 if period < 0 else int(period)


def bound(pod: JsonObject, binding: JsonObject) -> JsonObject:
    """The pod on a node (BindingREST). Raises Refusal."""
    name = pod["metadata"]["name"]
    target = (binding.get("target") or {}).get("name", "")
    if not target:
        raise invalid("Binding", name, [required("target.name")])
    if pod["metadata"].get("deletionTimestamp"):
        raise failures.conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise failures.conflict("pods/binding", name, f'pod {name} is already assigned to node "{node}"')
    pod["spec"]["nodeName"] = target
    scheduled: JsonObject = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    scheduled["lastTransitionTime"] = _rfc3339(datetime.now(UTC))
    conditions = [one for one in pod["status"].get("conditions", ()) if one["type"] != "PodScheduled"]
    pod["status"]["conditions"] = [*conditions, scheduled]
    return pod


def take_topology(pod: JsonObject, node: JsonObject) -> None:
    """The node's place among the labels of a pod that is bound to it (plugin/pkg/admission/podtopologylabels)."""
    found = node["metadata"].get("labels") or {}
    pod["metadata"].setdefault("labels", {}).update({name: found[name] for name in TOPOLOGY if name in found})


def disrupted(pod: JsonObject, now: datetime) -> JsonObject:
    """The pod with the condition that an eviction leaves."""
    condition: JsonObject = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    condition |= {"message": "Eviction API: evicting", "lastProbeTime": None, "lastTransitionTime": _rfc3339(now)}
    conditions = [one for one in pod["status"].get("conditions", ()) if one["type"] != "DisruptionTarget"]
    pod["status"]["conditions"] = [*conditions, condition]
    return pod


def resized(before: JsonObject, after: JsonObject) -> JsonObject:
    """An update of the resize subresource: resources of containers alone. Raises Refusal."""
    made = copy.deepcopy(before)
    for kind in _CONTAINERS:
        wanted = {one["name"]: one for one in after["spec"].get(kind) or ()}
        for container in made["spec"].get(kind) or ():
            container["resources"] = wanted.get(container["name"], container).get("resources", {})
    if made["spec"].get("nodeName", "") != after["spec"].get("nodeName", ""):
        cause = Cause("spec", "Forbidden: only cpu and memory resources are mutable", "FieldValueForbidden")
        raise invalid("Pod", before["metadata"]["name"], [cause])
    return with_generation(before, made)


def with_ephemeral_containers(before: JsonObject, after: JsonObject) -> JsonObject:
    """An update of the ephemeralcontainers subresource: none goes, none changes. Raises Refusal."""
    _refuse(before, ephemeral_problems(before, after))
    new = after["spec"].get("ephemeralContainers") or []
    made = copy.deepcopy(before)
    made["spec"]["ephemeralContainers"] = [
        _CONTAINER_DEFAULTS | {"imagePullPolicy": _pull_policy(one.get("image", ""))} | one for one in new
    ]
    return with_generation(before, made)


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
