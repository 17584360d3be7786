"""The node as a description (kubectl pkg/describe, describeNode).

Ours: what is used, beside what is there; upstream shows requests only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.api.default_resources import is_extended
from ipc.k8s.api.quantity import Notation, format_quantity, parse_quantity
from ipc.k8s.resources.node_roles import node_roles
from ipc.k8s.resources.times import NONE, UNKNOWN, local_time, since
from supervisor.cli.describe.lines import aligned, annotation_lines, label_lines, titled_lines
from supervisor.cli.printers.containers import COMPLETED
from supervisor.cli.printers.events import event_lines
from supervisor.cli.printers.usage import cores, mebibytes, rate_of, share, sized, working_set_of

RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_KINDS: Final = ("requests", "limits")
_INFO: Final = (
    ("Machine ID", "machineID"),
    ("System UUID", "systemUUID"),
    ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"),
    ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)


def describe_node(node: Json, pods: Sequence[Json], usage: Json, events: Sequence[Json] | None, now: float) -> str:
    """Everything about the node for people. ``usage``: the node's sample of a snapshot, empty when there is none.
    ``events``: those about the node, None to leave them out."""
    active = [pod for pod in pods if pod.get("status", {}).get("phase") not in COMPLETED]
    parts = (
        _head(node),
        _conditions(node["status"]),
        _resources(node["status"]),
        _info(node["status"]),
        _pods(active, now),
        _allocated(node["status"], active, usage),
        _system(usage),
        _images(node["status"]),
        () if events is None else event_lines(events, now),
    )
    return aligned(line for part in parts for line in part)


def _head(node: Json) -> Iterator[str]:
    meta, spec = node["metadata"], node.get("spec", {})
    labels = meta.get("labels", {})
    yield f"Name:\t{meta['name']}"
    yield f"Roles:\t{','.join(node_roles(labels)) or NONE}"
    yield from label_lines(labels)
    yield from annotation_lines(meta.get("annotations", {}))
    yield f"CreationTimestamp:\t{local_time(meta.get('creationTimestamp'))}"
    yield from titled_lines("Taints", sorted(map(_taint, spec.get("taints", ()))))
    yield f"Unschedulable:\t{str(bool(spec.get('unschedulable'))).lower()}"


def _taint(taint: Json) -> str:
    """(core/v1 taint.go, ToString)"""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _conditions(status: Json) -> Iterator[str]:
    yield "Conditions:"
    yield "  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage"
    yield "  ----\t------\t-----------------\t------------------\t------\t-------"
    for condition in status.get("conditions", ()):
        times = [local_time(condition.get(name)) for name in ("lastHeartbeatTime", "lastTransitionTime")]
        words = (condition["type"], condition["status"], *times, condition.get("reason", ""))
        yield "  " + "\t".join((*words, condition.get("message", "")))
    yield "Addresses:"
    yield from (f"  {each['type']}:\t{each['address']}" for each in status.get("addresses", ()))


def _resources(status: Json) -> Iterator[str]:
    for title, name in (("Capacity", "capacity"), ("Allocatable", "allocatable")):
        yield f"{title}:"
        yield from (f"  {resource}:\t{amount}" for resource, amount in sorted(status.get(name, {}).items()))


def _info(status: Json) -> Iterator[str]:
    yield "System Info:"
    info = status.get("nodeInfo", {})
    yield from (f"  {title}:\t{info.get(name) or UNKNOWN}" for title, name in _INFO)


def _pods(pods: Sequence[Json], now: float) -> Iterator[str]:
    yield f"Non-terminated Pods:\t({len(pods)} in total)"
    titles = ("CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age")
    yield "  " + "\t".join(("Namespace", "Name", *titles))
    yield "  " + "\t".join("-" * len(title) for title in ("Namespace", "Name", *titles))
    for pod in pods:
        meta = pod["metadata"]
        amounts = (_shown(resource, _amount(pod, kind, resource)) for resource in RESOURCES[:2] for kind in _KINDS)
        cells = (meta.get("namespace", ""), meta["name"], *amounts, since(meta.get("creationTimestamp"), now))
        yield "  " + "\t".join(cells)


def _allocated(status: Json, pods: Sequence[Json], usage: Json) -> Iterator[str]:
    """Requests and limits of all pods together, and what is used of it."""
    used = {"cpu": cores(rate_of(usage)), "memory": mebibytes(working_set_of(usage))}
    yield "Allocated resources:"
    yield "  Resource\tRequests\tLimits\tUsed"
    yield "  --------\t--------\t------\t----"
    for resource in RESOURCES:
        whole = parse_quantity(status.get("allocatable", {}).get(resource, "0"))
        sums = [sum((_amount(pod, kind, resource) for pod in pods), Fraction(0)) for kind in _KINDS]
        cells = (f"{_shown(resource, each)} ({share(float(each), float(whole))})" for each in sums)
        yield "  " + "\t".join((resource, *cells, used.get(resource) or sized(usage.get("fs", {}).get("used"))))
    for resource in sorted(filter(is_extended, status.get("allocatable", ()))):
        counts = [sum((_amount(pod, kind, resource) for pod in pods), Fraction(0)) for kind in _KINDS]
        yield "  " + "\t".join((resource, *map(str, counts)))


def _system(usage: Json) -> Iterator[str]:
    """Processes of the node that are no pod's, and how many processes there are."""
    yield "System containers:"
    for name, each in sorted((c["name"], c) for c in usage.get("system_containers", ())):
        yield f"  {name}:\t{cores(rate_of(each))} cpu, {mebibytes(working_set_of(each))} memory"
    limit = usage.get("process_limit", {})
    yield f"Processes:\t{limit.get('processes', UNKNOWN)} of {limit.get('max_pid', UNKNOWN)}"


def _images(status: Json) -> Iterator[str]:
    images = status.get("images", ())
    yield f"Images:\t({len(images)} shown, the largest first)"
    yield from (f"  {next(iter(image.get('names', ())), NONE)}\t{sized(image.get('sizeBytes', 0))}" for image in images)


def _amount(pod: Json, kind: str, resource: str) -> Fraction:
    """Requests or limits of a pod: its containers' sum, or more when an init container asks for more."""
    spec = pod.get("spec", {})
    own = spec.get("resources", {}).get(kind, {})
    if resource in own:
        return parse_quantity(own[resource])
    inits = spec.get("initContainers", ())
    lasting = [*spec.get("containers", ()), *(c for c in inits if c.get("restartPolicy") == "Always")]
    passing = [c for c in inits if c.get("restartPolicy") != "Always"]
    steady = sum(_of_containers(lasting, kind, resource), Fraction(0))
    return max([steady, *_of_containers(passing, kind, resource)])


def _of_containers(containers: Iterable[Json], kind: str, resource: str) -> list[Fraction]:
    return [parse_quantity(c.get("resources", {}).get(kind, {}).get(resource, "0")) for c in containers]


def _shown(resource: str, amount: Fraction) -> str:
    return format_quantity(amount, Notation.DECIMAL if resource == "cpu" else Notation.BINARY)
