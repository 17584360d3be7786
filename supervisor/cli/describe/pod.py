"""`describe pod` (kubectl pkg/describe, describePod), with what only Rootlet knows before the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE, local_time, since
from supervisor.cli.describe.container import describe_container, describe_resources
from supervisor.cli.describe.lines import aligned, annotation_lines, label_lines, pair_lines, titled_lines
from supervisor.cli.describe.volume import describe_volume
from supervisor.cli.printers.containers import COMPLETED
from supervisor.cli.printers.events import event_lines, is_of

_BARE_OPERATORS: Final = {"Exists": "", "DoesNotExist": "!"}
"""Operators of a selector without values -> the sign before the key."""
_CONTAINER_KINDS: Final = (
    ("Init Containers", "initContainers", "initContainerStatuses"),
    ("Containers", "containers", "containerStatuses"),
    ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
)


def describe_pod(pod: Json, details: Json, events: Iterable[Json] | None, now: float, usage: Json | None = None) -> str:
    """Everything about one pod for people; ``now`` in epoch seconds. ``events``: those of its UID, None for none of
    them. ``usage``: its sample of a snapshot; empty when there is none, None when nobody asked for it."""
    parts = (
        _head(pod, now),
        _addresses(pod.get("status", {})),
        _owner(pod),
        _resources(pod.get("spec", {}).get("resources", {})),
        _containers(pod, usage),
        _readiness_gates(pod),
        _conditions(pod.get("status", {})),
        _volumes(pod.get("spec", {})),
        _placement(pod),
        _rootlet(details),
        () if events is None else event_lines([event for event in events if is_of(event, pod)], now),
    )
    return aligned(line for part in parts for line in part)


def _head(pod: Json, now: float) -> Iterator[str]:
    meta, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    yield f"Name:\t{meta.get('name', '')}"
    yield f"Namespace:\t{meta.get('namespace', '')}"
    if spec.get("priority") is not None:
        yield f"Priority:\t{spec['priority']}"
    yield from _if_set("Priority Class Name", spec.get("priorityClassName"))
    yield from _if_set("Runtime Class Name", spec.get("runtimeClassName"))
    yield from _if_set("Service Account", spec.get("serviceAccountName"))
    yield f"Node:\t{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else f"Node:\t{NONE}"
    if status.get("startTime"):
        yield f"Start Time:\t{local_time(status['startTime'])}"
    yield from label_lines(meta.get("labels", {}))
    yield from annotation_lines(meta.get("annotations", {}))
    yield from _state(meta, status, now)
    yield from _if_set("Reason", status.get("reason"))
    yield from _if_set("Message", status.get("message"))
    profile = spec.get("securityContext", {}).get("seccompProfile", {})
    yield from _if_set("SeccompProfile", profile.get("type"))
    yield from _if_set("LocalhostProfile", profile.get("localhostProfile"))


def _state(meta: Json, status: Json, now: float) -> Iterator[str]:
    if meta.get("deletionTimestamp") and status.get("phase") not in COMPLETED:
        yield f"Status:\tTerminating (lasts {since(meta['deletionTimestamp'], now)})"
        yield f"Termination Grace Period:\t{meta.get('deletionGracePeriodSeconds', 0)}s"
    else:
        yield f"Status:\t{status.get('phase', '')}"


def _if_set(title: str, value: object) -> Iterator[str]:
    if value:
        yield f"{title}:\t{value}"


def _addresses(status: Json) -> Iterator[str]:
    yield f"IP:\t{status.get('podIP', '')}"
    ips = status.get("podIPs", ())
    if not ips:
        yield f"IPs:\t{NONE}"
        return
    yield "IPs:"
    yield from (f"  IP:\t{entry.get('ip', '')}" for entry in ips)


def _owner(pod: Json) -> Iterator[str]:
    """Controller of the pod (printController), and the node where it was once meant to run."""
    owners = pod["metadata"].get("ownerReferences", ())
    controller = next((owner for owner in owners if owner.get("controller")), None)
    if controller is not None:
        yield f"Controlled By:\t{controller['kind']}/{controller['name']}"
    yield from _if_set("NominatedNodeName", pod.get("status", {}).get("nominatedNodeName"))


def _resources(resources: Json) -> Iterator[str]:
    if resources:
        yield "Resources:"
    yield from describe_resources(resources, "  ")


def _containers(pod: Json, usage: Json | None) -> Iterator[str]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("containers"):
        yield f"Containers: {NONE}"
    samples = {sample["name"]: sample for sample in (usage or {}).get("containers", ())}
    for title, kind, status_kind in _CONTAINER_KINDS:
        statuses = {s["name"]: s for s in status.get(status_kind, ())}
        if spec.get(kind):
            yield f"{title}:"
        for container in spec.get(kind, ()):
            name = container["name"]
            sample = samples.get(name, {}) if usage is not None else None
            yield from describe_container(container, statuses.get(name), pod, sample)


def _readiness_gates(pod: Json) -> Iterator[str]:
    gates = [gate["conditionType"] for gate in pod.get("spec", {}).get("readinessGates", ())]
    if not gates:
        return
    known = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", ())}
    yield from ("Readiness Gates:", "  Type\tStatus")
    yield from (f"  {gate} \t{known.get(gate, NONE)} " for gate in gates)


def _conditions(status: Json) -> Iterator[str]:
    conditions = status.get("conditions", ())
    if conditions:
        yield from ("Conditions:", "  Type\tStatus")
    yield from (f"  {c['type']} \t{c['status']} " for c in conditions)


def _volumes(spec: Json) -> Iterator[str]:
    volumes = spec.get("volumes", ())
    yield "Volumes:" if volumes else f"Volumes:\t{NONE}"
    for volume in volumes:
        yield from describe_volume(volume)


def _placement(pod: Json) -> Iterator[str]:
    spec = pod.get("spec", {})
    yield f"QoS Class:\t{pod.get('status', {}).get('qosClass', '')}"
    yield from pair_lines("Node-Selectors", spec.get("nodeSelector", {}))
    tolerations = sorted(spec.get("tolerations", ()), key=lambda t: str(t.get("key", "")))
    yield from titled_lines("Tolerations", [_toleration(t) for t in tolerations])
    spreads = sorted(spec.get("topologySpreadConstraints", ()), key=lambda each: str(each.get("topologyKey", "")))
    if spreads:
        yield from titled_lines("Topology Spread Constraints", [_spread(each) for each in spreads])


def _toleration(toleration: Json) -> str:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    text = key + (f"={value}" if value else "")
    text += f":{toleration['effect']}" if toleration.get("effect") else ""
    if toleration.get("operator") == "Exists" and not value:
        text += " op=Exists" if text else "op=Exists"
    limit_s = toleration.get("tolerationSeconds")
    return text if limit_s is None else f"{text} for {limit_s}s"


def _spread(constraint: Json) -> str:
    """(printTopologySpreadConstraintsMultiline)"""
    text = f"{constraint.get('topologyKey', '')}:{constraint.get('whenUnsatisfiable', '')}"
    text += f" when max skew {constraint.get('maxSkew', 0)} is exceeded"
    selector = constraint.get("labelSelector")
    return text if selector is None else f"{text} for selector {_selector(selector)}"


def _selector(selector: Json) -> str:
    """(apimachinery pkg/apis/meta/v1 helpers.go, FormatLabelSelector)"""
    words = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    words += (_expression(each) for each in selector.get("matchExpressions", ()))
    return ",".join(words) or NONE


def _expression(expression: Json) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    if operator in _BARE_OPERATORS:
        return f"{_BARE_OPERATORS[operator]}{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(expression.get('values', ())))})"


def _rootlet(details: Json) -> Iterator[str]:
    """Where it comes from, who works on it, what the last sync did, and what is waited for."""
    yield f"Source:\t{details.get('source') or NONE}"
    yield f"Worker:\t{details.get('worker') or NONE}"
    yield f"Sandbox:\t{_sandbox(details.get('sandbox'))}"
    yield f"Last Sync:\t{details.get('summary') or NONE}"
    yield from _if_set("Waits For", _waits_for(details.get("nextStep") or {}))
    tries = details.get("nextTry", {})
    if tries:
        yield "Next Try:"
    yield from (f"  {name}:\t{tries[name]}" for name in sorted(tries))


def _waits_for(step: Json) -> str:
    """``Paused: it is paused: rootlet resume pod``, with a time where there is one."""
    reason = f"{step['reason']}: " if step.get("reason") else ""
    until = f", until {local_time(step['until'])}" if step.get("until") else ""
    return f"{reason}{step['message']}{until}" if step else ""


def _sandbox(sandbox: Json | None) -> str:
    """``<id> (attempt 0, ready)``."""
    return f"{sandbox['id']} (attempt {sandbox['attempt']}, {sandbox['state']})" if sandbox else NONE
