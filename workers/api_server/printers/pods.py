"""Rows of pods (pkg/printers/internalversion/printers.go, printPod)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.k8s.resources.times import NONE, since
from ipc.link.messages.wait_reasons import HELD_UP_CONDITION

SLIRP4NETNS_IP: Final = "10.0.2.100"
"""The address that slirp4netns gives to every pod. It leads to the pod from within the pod only."""
PRIVATE: Final = "<private>"


class PodSummary(msgspec.Struct, frozen=True):
    """Summary of a pod's containers for one row."""

    ready: int
    total: int
    reason: str
    """The STATUS column."""
    restarts: int
    restarted_at: str
    """RFC 3339; empty when unknown."""


class _Progress(msgspec.Struct, frozen=True):
    """How far a pod's init containers are."""

    reason: str
    """Empty when all of them are done."""
    visited: int
    """How many of them have begun."""
    ready: int


def pod_row(pod: Json, now: float) -> Sequence[str]:
    """Cells of a pod; ``now`` in epoch seconds."""
    summary = summarize_pod(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.restarted_at:
        restarts += f" ({since(summary.restarted_at, now)} ago)"
    meta = pod["metadata"]
    ready = f"{summary.ready}/{summary.total}"
    age = since(meta.get("creationTimestamp"), now)
    return (meta.get("name", ""), ready, summary.reason, restarts, age, *_wide_cells(pod))


def _wide_cells(pod: Json) -> tuple[str, ...]:
    status, spec = pod.get("status", {}), pod.get("spec", {})
    ips = [entry.get("ip", "") for entry in status.get("podIPs", ())]
    ip = (ips[0] if ips else "") or NONE
    gates = [gate["conditionType"] for gate in spec.get("readinessGates", ())]
    passed = sum(_has_condition(pod, gate) for gate in gates)
    return (
        PRIVATE if ip == SLIRP4NETNS_IP else ip,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
        ",".join(_host_ports(spec)) or NONE,
        next((each["reason"] for each in status.get("conditions", ()) if each["type"] == HELD_UP_CONDITION), NONE),
    )


def _host_ports(spec: Json) -> Iterable[str]:
    """``8080->80/tcp``, as `podman ps` shows them: where the pod is reached on the host's addresses."""
    containers = (*spec.get("initContainers", ()), *spec.get("containers", ()))
    for port in (port for container in containers for port in container.get("ports", ())):
        if host_port := port.get("hostPort"):
            address = f"{port['hostIP']}:" if port.get("hostIP") else ""
            yield f"{address}{host_port}->{port['containerPort']}/{port.get('protocol', 'TCP').lower()}"


def summarize_pod(pod: Json) -> PodSummary:
    """Counts and the one word that says most about a pod, as printPod finds it."""
    status, spec = pod.get("status", {}), pod.get("spec", {})
    sidecars = {c["name"] for c in spec.get("initContainers", ()) if c.get("restartPolicy") == "Always"}
    init_statuses = status.get("initContainerStatuses", ())
    progress = _init_progress(init_statuses, sidecars, len(spec.get("initContainers", ())))
    counted, ready = list(init_statuses[: progress.visited]), progress.ready
    reason = progress.reason or _pod_reason(pod)
    if not progress.reason or _has_condition(pod, "Initialized"):
        counted = [s for s in counted if s["name"] in sidecars] + list(status.get("containerStatuses", ()))
        ready += sum(map(_is_ready, status.get("containerStatuses", ())))
        reason = _containers_reason(pod, reason)
    restarts, restarted_at = _restarts(counted)
    total = len(spec.get("containers", ())) + len(sidecars)
    return PodSummary(ready, total, _deletion_reason(pod) or reason, restarts, restarted_at)


def _pod_reason(pod: Json) -> str:
    status = pod.get("status", {})
    gated = any(
        c["type"] == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions", ())
    )
    return "SchedulingGated" if gated else status.get("reason") or status.get("phase", "")


def _deletion_reason(pod: Json) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    status = pod.get("status", {})
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in TERMINAL_PHASES else "Terminating"


def _init_progress(statuses: Sequence[Json], sidecars: set[str], total: int) -> _Progress:
    """Up to the first init container that is not done; the ones after it have not begun."""
    ready = 0
    for index, status in enumerate(statuses):
        terminated = status.get("state", {}).get("terminated")
        if terminated and terminated.get("exitCode") == 0:
            continue
        if status["name"] in sidecars and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        return _Progress(_init_reason(status.get("state", {}), index, total), index + 1, ready)
    return _Progress("", len(statuses), ready)


def _init_reason(state: Json, index: int, total: int) -> str:
    if state.get("terminated"):
        return f"Init:{_terminated_reason(state['terminated'])}"
    waiting = (state.get("waiting") or {}).get("reason", "")
    return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{index}/{total}"


def _containers_reason(pod: Json, reason: str) -> str:
    """The first container that does not run gives the word; Completed gives way to what failed or still runs."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    words = [word for status in statuses if (word := _state_reason(status.get("state", {})))]
    reason = words[0] if words else reason
    if reason != "Completed":
        return reason
    runs = any(map(_is_ready, statuses))
    if runs and _has_condition(pod, "Ready"):
        return "Running"
    return _first_failure(statuses) or ("NotReady" if runs else reason)


def _first_failure(statuses: Iterable[Json]) -> str:
    """The word for the first container that ended with another exit code than 0; empty without one."""
    ends = (status.get("state", {}).get("terminated") or {} for status in statuses)
    return next((_terminated_reason(end) for end in ends if end.get("exitCode")), "")


def _state_reason(state: Json) -> str:
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting:
        return str(waiting)
    return _terminated_reason(state["terminated"]) if state.get("terminated") else ""


def _terminated_reason(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal", 0)
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_ready(status: Json) -> bool:
    state = status.get("state", {})
    return bool(status.get("ready") and state.get("running") is not None and not _state_reason(state))


def _restarts(statuses: Iterable[Json]) -> tuple[int, str]:
    """How often in all, and when the last life before the present one ended."""
    count, last = 0, ""
    for status in statuses:
        count += status.get("restartCount", 0)
        last = max(last, (status.get("lastState", {}).get("terminated") or {}).get("finishedAt") or "")
    return count, last


def _has_condition(pod: Json, type_: str) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(c["type"] == type_ and c["status"] == "True" for c in conditions)
