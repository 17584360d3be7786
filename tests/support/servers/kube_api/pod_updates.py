"""Changes of a pod that an update may bring, and of its status (pkg/apis/core/validation/validation.go,
ValidatePodUpdate, ValidatePodStatusUpdate, ValidatePodEphemeralContainersUpdate). Pure: causes of a refusal, none for a
good update.

Left out: what only the new object breaks (ValidatePodCreate and its kin have far more rules).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from tests.support.servers.kube_api.failures import Cause, JsonObject, not_permitted, required

MIRROR: Final = "kubernetes.io/config.mirror"
CONTAINERS: Final = ("initContainers", "containers")
STATUSES: Final = {
    "initContainerStatuses": "initContainers",
    "containerStatuses": "containers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
"""Lists of the status, and the containers that they are of."""
FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


def update_problems(before: JsonObject, after: JsonObject) -> Iterator[Cause]:
    """Reasons against a plain update."""
    yield from _metadata(before["metadata"], after["metadata"])
    old, new = before["spec"], after["spec"]
    if any(len(old.get(kind) or ()) != len(new.get(kind) or ()) for kind in CONTAINERS):
        changed = next(kind for kind in CONTAINERS if len(old.get(kind) or ()) != len(new.get(kind) or ()))
        yield not_permitted(f"spec.{changed}", "pod updates may not add or remove containers")
        return
    for kind in CONTAINERS:
        for index, one in enumerate(new.get(kind) or ()):
            if not one.get("image"):
                yield required(f"spec.{kind}[{index}].image")
    yield from _deadline(old, new)
    yield from _tolerations(old, new)
    yield from _gates(old, new)
    is_gated = bool(old.get("schedulingGates"))
    if is_gated:
        yield from _selectors(old, new)
    if _fixed(old, is_gated=is_gated) != _fixed(_with_grace(old, new), is_gated=is_gated):
        yield not_permitted("spec", FIXED)


def _metadata(old: JsonObject, new: JsonObject) -> Iterator[Cause]:
    for name in _DELETION:
        if name in old and old[name] != new.get(name):
            yield Cause(f"metadata.{name}", "Invalid value: field is immutable")
    was, now = ((found.get("annotations") or {}).get(MIRROR) for found in (old, new))
    if was is not None and was != now:
        said = "may not remove or update mirror pod annotation"
        yield not_permitted(f"metadata.annotations[{MIRROR}]", said)


def _deadline(old: JsonObject, new: JsonObject) -> Iterator[Cause]:
    field, was, now = "spec.activeDeadlineSeconds", old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if now is not None and not 0 <= now < 2**31:
        yield Cause(field, f"Invalid value: {now}: must be between 0 and 2147483647, inclusive")
    elif was is not None and now is None:
        yield Cause(field, "Invalid value: null: must not update from a positive integer to nil value")
    elif was is not None and now > was:
        yield Cause(field, f"Invalid value: {now}: must be less than or equal to previous value")


def _tolerations(old: JsonObject, new: JsonObject) -> Iterator[Cause]:
    """ValidatePodToleration: more of them, and other times of those that are there."""

    def same(one: JsonObject) -> JsonObject:
        return {name: value for name, value in one.items() if name != "tolerationSeconds"}

    there = [same(one) for one in new.get("tolerations") or ()]
    if any(same(one) not in there for one in old.get("tolerations") or ()):
        yield not_permitted("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _gates(old: JsonObject, new: JsonObject) -> Iterator[Cause]:
    known = [gate["name"] for gate in old.get("schedulingGates") or ()]
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate["name"] not in known:
            said = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield not_permitted(f"spec.schedulingGates[{index}].name", said)


def _selectors(old: JsonObject, new: JsonObject) -> Iterator[Cause]:
    """A gated pod's choice of nodes may become narrower, never wider."""
    for key, value in (old.get("nodeSelector") or {}).items():
        if (new.get("nodeSelector") or {}).get(key) != value:
            yield Cause("spec.nodeSelector", "Invalid value: only additions to spec.nodeSelector are allowed")
    field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    was, now = _terms(old), _terms(new)
    if was and len(was) != len(now):
        yield Cause(field, "Invalid value: no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (before, after) in enumerate(zip(was, now, strict=False)):
        if any(
            one not in (after.get(kind) or ())
            for kind in ("matchExpressions", "matchFields")
            for one in before.get(kind) or ()
        ):
            yield Cause(f"{field}[{index}]", "Invalid value: only additions are allowed (no mutations or deletions)")


def _terms(spec: JsonObject) -> list[JsonObject]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []


def _with_grace(old: JsonObject, new: JsonObject) -> JsonObject:
    """The new spec with the old grace period, where it may be another one."""
    was, now = old.get("terminationGracePeriodSeconds"), new.get("terminationGracePeriodSeconds")
    if was is not None and was < 0 and now == 1:
        return {**new, "terminationGracePeriodSeconds": was}
    return new


def _fixed(spec: JsonObject, *, is_gated: bool) -> JsonObject:
    """The part of a spec that stays as it is. Of a gated pod the choice of nodes was looked at already."""
    found = copy.deepcopy(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        found.pop(name, None)
    for kind in CONTAINERS:
        for container in found.get(kind) or ():
            container.pop("image", None)
    if is_gated:
        found.pop("nodeSelector", None)
        affinity = found.get("affinity") or {}
        affinity.pop("nodeAffinity", None)
        found["affinity"] = {kind: value for kind, value in affinity.items() if value}
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


# --- the status --------------------------------------------------------------------------------------------------


def status_problems(before: JsonObject, after: JsonObject) -> Iterator[Cause]:
    """Reasons against an update of the status."""
    old, new, spec = before.get("status") or {}, after.get("status") or {}, before["spec"]
    was, now = old.get("nominatedNodeName", ""), new.get("nominatedNodeName", "")
    if spec.get("nodeName") and now and now != was:
        said = "may not be set on pods that are already bound to a node"
        yield not_permitted("status.nominatedNodeName", said)
    for index, condition in enumerate(new.get("conditions") or ()):
        if condition.get("observedGeneration", 0) < 0:
            field = f"status.conditions[{index}].observedGeneration"
            yield Cause(field, f"Invalid value: {condition['observedGeneration']}: must be a non-negative integer")
    if new.get("observedGeneration", 0) < 0:
        said = f"Invalid value: {new['observedGeneration']}: must be a non-negative integer"
        yield Cause("status.observedGeneration", said)
    if (qos := old.get("qosClass")) and new.get("qosClass") != qos:
        yield Cause("status.qosClass", f'Invalid value: "{new.get("qosClass", "")}": field is immutable')
    for kind, containers in STATUSES.items():
        yield from _transitions(kind, old, new, spec, containers)
        yield from _users(kind, new)


def _transitions(kind: str, old: JsonObject, new: JsonObject, spec: JsonObject, containers: str) -> Iterator[Cause]:
    """ValidateContainerStateTransition: what has ended for good stays ended."""
    policy = spec.get("restartPolicy", "Always")
    if policy == "Always" or kind == "ephemeralContainerStatuses":
        return
    rules = {one["name"]: one for one in spec.get(containers) or ()}
    states = {found["name"]: found.get("state") or {} for found in new.get(kind) or ()}
    for index, found in enumerate(old.get(kind) or ()):
        ended = (found.get("state") or {}).get("terminated")
        own = rules.get(found["name"], {})
        restarts = own.get("restartPolicy") == "Always" or bool(own.get("restartPolicyRules"))
        may = restarts or (policy == "OnFailure" and ended and ended.get("exitCode"))
        if ended and not may and found["name"] in states and "terminated" not in states[found["name"]]:
            yield not_permitted(f"status.{kind}[{index}].state", "may not be transitioned to non-terminated state")


def _users(kind: str, new: JsonObject) -> Iterator[Cause]:
    for index, found in enumerate(new.get(kind) or ()):
        user: dict[str, Any] = (found.get("user") or {}).get("linux") or {}
        for name in ("uid", "gid"):
            if user and not 0 <= user.get(name, 0) < 2**31:
                field = f"status.{kind}[{index}].user.linux.{name}"
                yield Cause(field, f"Invalid value: {user[name]}: must be between 0 and 2147483647, inclusive")


# --- ephemeral containers ----------------------------------------------------------------------------------------


def ephemeral_problems(before: JsonObject, after: JsonObject) -> Iterator[Cause]:
    """Reasons against an update of the subresource ``ephemeralcontainers``: none goes, none changes."""
    old, new = (found["spec"].get("ephemeralContainers") or [] for found in (before, after))
    if MIRROR in (before["metadata"].get("annotations") or {}):
        yield not_permitted("[]", "static pods do not support ephemeral containers")
    made = {one["name"]: one for one in new}
    for one in old:
        if one["name"] not in made:
            said = f'existing ephemeral containers "{one["name"]}" may not be removed'
            yield not_permitted("spec.ephemeralContainers", said)
        elif made[one["name"]] != one:
            said = f'existing ephemeral containers "{one["name"]}" may not be changed'
            yield not_permitted("spec.ephemeralContainers", said)
