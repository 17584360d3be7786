"""Message of an evicted pod's status and event (pkg/kubelet/eviction/helpers.go, evictionMessage)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.k8s.api.quantity import Amount, Notation, parse_amount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.observations import SignalObservations, amount_of, threshold_amount
from ipc.k8s.eviction.signals import EPHEMERAL_STORAGE, MEMORY, resource_of
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage

OFFENDING_CONTAINERS: Final = "offending_containers"
OFFENDING_CONTAINERS_USAGE: Final = "offending_containers_usage"
OFFENDING_POD: Final = "offending_pod"
OFFENDING_POD_USAGE: Final = "offending_pod_usage"
STARVED_RESOURCE: Final = "starved_resource"
"""Annotations of the event."""
_NOTHING: Final = Amount(Fraction(0))


class EvictionMessage(msgspec.Struct, frozen=True):
    """Message of the pod's status and event, and annotations of the event."""

    text: str
    annotations: dict[str, str]


class _Offender(msgspec.Struct, frozen=True):
    """Somebody who uses more than was requested."""

    name: str
    usage: Amount
    request: Amount


def eviction_message(
    resource: str,
    pod: Pod,
    usage: PodUsage | None,
    thresholds: Iterable[Threshold],
    observations: SignalObservations,
) -> EvictionMessage:
    """The words to a pod that goes because that resource is starved."""
    text = f"The node was low on resource: {resource}. {_threshold_text(resource, thresholds, observations)}"
    if usage is None:
        return EvictionMessage(text, {})
    annotations: dict[str, str] = {}
    if (whole := _whole_pod(resource, pod, usage)) is not None:
        text += _sentence("Pod", whole, resource)
        annotations |= {OFFENDING_POD: whole.name, OFFENDING_POD_USAGE: str(whole.usage)}
    offenders = tuple(_offenders(resource, pod, usage.containers))
    text += "".join(_sentence("Container", offender, resource) for offender in offenders)
    annotations |= {
        OFFENDING_CONTAINERS: ",".join(offender.name for offender in offenders),
        OFFENDING_CONTAINERS_USAGE: ",".join(str(offender.usage) for offender in offenders),
        STARVED_RESOURCE: resource,
    }
    return EvictionMessage(text, annotations)


def _threshold_text(resource: str, thresholds: Iterable[Threshold], observations: SignalObservations) -> str:
    """getThresholdMetInfo: the first threshold of that resource that was observed."""
    for threshold in thresholds:
        observed = observations.get(threshold.signal)
        if observed is not None and resource_of(threshold.signal) == resource:
            available = amount_of(threshold.signal, observed.available)
            return f"Threshold quantity: {threshold_amount(threshold, observed)}, available: {available}. "
    return ""


def _whole_pod(resource: str, pod: Pod, usage: PodUsage) -> _Offender | None:
    """The pod itself, where it has a request of its own; upstream names it whatever it uses."""
    requests = pod.spec.resources.requests if pod.spec.resources is not None else {}
    if resource != MEMORY or resource not in requests or usage.memory is None:
        return None
    return _Offender(pod.metadata.name, _bytes(usage.memory), parse_amount(requests[resource]))


def _offenders(resource: str, pod: Pod, containers: Iterable[ContainerUsage]) -> Iterator[_Offender]:
    """Regular and init containers; an ephemeral one cannot request anything and is not named."""
    requests: Mapping[str, Mapping[str, str | int | float]] = {
        c.name: c.resources.requests for c in (*pod.spec.containers, *pod.spec.init_containers)
    }
    for container in containers:
        used = _used(resource, container)
        if used is None or container.name not in requests:
            continue
        stated = requests[container.name].get(resource)
        request = parse_amount(stated) if stated is not None else _NOTHING
        if used > request.value:
            yield _Offender(container.name, _bytes(used), request)


def _used(resource: str, container: ContainerUsage) -> int | None:
    """In bytes; None when it is not known, or the resource has no requests (inodes, pids)."""
    if resource == MEMORY:
        return container.memory
    if resource != EPHEMERAL_STORAGE:
        return None
    rootfs, logs = container.rootfs or DiskUsage(), container.logs or DiskUsage()
    return rootfs.used + logs.used if rootfs.used is not None and logs.used is not None else None


def _sentence(kind: str, offender: _Offender, resource: str) -> str:
    return (
        f"{kind} {offender.name} was using {offender.usage}, request is {offender.request}, "
        f"has larger consumption of {resource}. "
    )


def _bytes(number: int) -> Amount:
    return Amount(Fraction(number), Notation.BINARY)
