"""Conditions of the node (setters.go, ReadyCondition, MemoryPressureCondition and others).

A condition's transition is dated when its status changes, its heartbeat each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.nodestatus.node import NODE_NOT_READY, NODE_READY, NodeCondition, NodeEvent, NodeStatus

READY: Final = "Ready"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
REQUIRED: Final = ("cpu", "memory", "pods", "ephemeral-storage")
"""Resources without which a node is not ready."""


class _Words(msgspec.Struct, frozen=True):
    """Reason, message and event of a pressure condition."""

    reason: str
    message: str
    event: str


_PRESSURE: Final[Mapping[tuple[str, bool], _Words]] = {
    ("MemoryPressure", True): _Words(
        "KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"
    ),
    ("MemoryPressure", False): _Words(
        "KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"
    ),
    ("DiskPressure", True): _Words("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
    ("DiskPressure", False): _Words(
        "KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"
    ),
    ("PIDPressure", True): _Words(
        "KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"
    ),
    ("PIDPressure", False): _Words(
        "KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"
    ),
}
Changed = tuple[tuple[NodeCondition, ...], tuple[NodeEvent, ...]]


def statuses_of(conditions: Sequence[NodeCondition]) -> Mapping[str, str]:
    """Type -> status."""
    return {condition.type: condition.status for condition in conditions}


def set_condition(conditions: Sequence[NodeCondition], new: NodeCondition, now: str) -> tuple[NodeCondition, ...]:
    """The conditions with this one, dated."""
    return _with(conditions, new, now)


def set_pressure(conditions: Sequence[NodeCondition], kind: str, *, pressure: bool, now: str) -> Changed:
    """The conditions with this one, and the event of its change; the first time is a change too."""
    words = _PRESSURE[kind, pressure]
    new = NodeCondition(type=kind, status=TRUE if pressure else FALSE, reason=words.reason, message=words.message)
    before = _find(conditions, kind)
    is_changed = before is None or before.status != new.status
    return _with(conditions, new, now), (NodeEvent("Normal", words.event),) if is_changed else ()


def set_ready(
    conditions: Sequence[NodeCondition],
    *,
    errors: Sequence[str],
    capacity: Mapping[str, str],
    now: str,
    required: Sequence[str] = REQUIRED,
    warning: str = "",
) -> Changed:
    """The conditions with Ready, and the event of its change. ``errors`` of runtime, network, storage and shutdown."""
    missing = [name for name in required if name not in capacity]
    every = [error for error in errors if error]
    if missing:
        every.append(f"missing node capacity for resources: {', '.join(missing)}")
    if every:
        message = every[0] if len(every) == 1 else f"[{', '.join(every)}]"
        new = NodeCondition(type=READY, status=FALSE, reason="KubeletNotReady", message=message)
    else:
        message = "kubelet is posting ready status" + (f". WARNING: {warning}" if warning else "")
        new = NodeCondition(type=READY, status=TRUE, reason="KubeletReady", message=message)
    before = _find(conditions, READY)
    if before is None or before.status == new.status:
        return _with(conditions, new, now), ()
    event = NODE_READY if new.status == TRUE else NODE_NOT_READY
    return _with(conditions, new, now), (NodeEvent("Normal", event),)


def with_conditions(status: NodeStatus, conditions: Sequence[NodeCondition]) -> NodeStatus:
    """Ready stands last: clients wait for it to say that all others were set."""
    ordered = sorted(conditions, key=lambda condition: condition.type == READY)
    return msgspec.structs.replace(status, conditions=tuple(ordered))


def _find(conditions: Sequence[NodeCondition], kind: str) -> NodeCondition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def _with(conditions: Sequence[NodeCondition], new: NodeCondition, now: str) -> tuple[NodeCondition, ...]:
    before = _find(conditions, new.type)
    is_same = before is not None and before.status == new.status
    transition = before.last_transition_time if before is not None and is_same else now
    dated = msgspec.structs.replace(new, last_heartbeat_time=now, last_transition_time=transition)
    if before is None:
        return (*conditions, dated)
    return tuple(dated if condition.type == new.type else condition for condition in conditions)
