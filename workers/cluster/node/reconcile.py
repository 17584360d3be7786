"""A Node that is there already, brought in line with the one that would have been made (kubelet_node_status.go,
tryRegisterWithAPIServer). Pure.

Only what the kubelet answers for is changed: default labels, the annotation of volumes, resources. Taints and labels of
the configuration are the operator's from the first registration on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.default_resources import is_extended
from workers.cluster.node.initial_node import ARCH, ATTACH_DETACH, HOST_NAME, OLD_ARCH, OLD_OS, OS
from workers.cluster.node.types import ClusterNode
from workers.nodestatus.machine import HUGE_PAGES
from workers.nodestatus.version import HostVersions

DEFAULT_LABELS: Final = (
    HOST_NAME,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    OS,
    ARCH,
    OLD_OS,
    OLD_ARCH,
)
DEFAULT_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def reconciled(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """The existing Node with what it has to have; the same one when nothing is missing."""
    for step in _STEPS:
        existing = step(initial, existing)
    return existing


def with_attach_detach(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """reconcileCMADAnnotationWithExistingNode."""
    wanted = initial.metadata.annotations.get(ATTACH_DETACH)
    if (wanted or "") == existing.metadata.annotations.get(ATTACH_DETACH, ""):
        return existing
    kept = {key: value for key, value in existing.metadata.annotations.items() if key != ATTACH_DETACH}
    annotations = kept if wanted is None else {**kept, ATTACH_DETACH: wanted}
    return _with_metadata(existing, annotations=annotations)


def with_default_labels(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """updateDefaultLabels: an empty value takes the label away."""
    labels = dict(existing.metadata.labels)
    for name in DEFAULT_LABELS:
        wanted = initial.metadata.labels.get(name)
        if wanted is None:
            continue
        if wanted:
            labels[name] = wanted
        else:
            labels.pop(name, None)
    return existing if labels == existing.metadata.labels else _with_metadata(existing, labels=labels)


def with_default_resources(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """updateDefaultResources: those that the existing Node lacks."""
    return _with_resources(
        existing,
        _with_missing(initial.status.capacity, existing.status.capacity),
        _with_missing(initial.status.allocatable, existing.status.allocatable),
    )


def with_huge_pages(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """reconcileHugePageResource: amounts of this host's page sizes, and no others."""
    existing = with_default_resources(initial, existing)
    return _with_resources(
        existing,
        _with_pages(initial.status.capacity, existing.status.capacity),
        _with_pages(initial.status.allocatable, existing.status.allocatable),
    )


def without_extended_resources(initial: ClusterNode, existing: ClusterNode, kept: Collection[str] = ()) -> ClusterNode:
    """reconcileExtendedResource: nothing is left of devices that there were, but for the resources ``kept``."""
    existing = with_default_resources(initial, existing)
    stated = existing.status.capacity
    zeros = {name: "0" for name in stated if is_extended(name) and name not in kept}
    if not zeros:
        return existing
    return _with_resources(existing, {**stated, **zeros}, {**existing.status.allocatable, **zeros})


def _with_own_devices(initial: ClusterNode, existing: ClusterNode) -> ClusterNode:
    """Devices of the configuration are known from the start: to call them none for a moment would be wrong."""
    return without_extended_resources(initial, existing, kept=initial.status.capacity)


def with_system_labels(existing: ClusterNode, host: HostVersions) -> ClusterNode:
    """updateNode: labels of operating system and architecture that somebody has changed are set again."""
    wanted = {OS: host.operating_system, ARCH: host.architecture}
    if all(existing.metadata.labels.get(name) == value for name, value in wanted.items()):
        return existing
    return _with_metadata(existing, labels={**existing.metadata.labels, **wanted})


_STEPS: Final[tuple[Callable[[ClusterNode, ClusterNode], ClusterNode], ...]] = (
    with_attach_detach,
    with_default_labels,
    _with_own_devices,
    with_huge_pages,
)


def _with_missing(wanted: Mapping[str, str], there: Mapping[str, str]) -> Mapping[str, str]:
    return {**{name: wanted[name] for name in DEFAULT_RESOURCES if name in wanted}, **there}


def _with_pages(wanted: Mapping[str, str], there: Mapping[str, str]) -> Mapping[str, str]:
    others = {name: amount for name, amount in there.items() if not name.startswith(HUGE_PAGES)}
    return {**others, **{name: amount for name, amount in wanted.items() if name.startswith(HUGE_PAGES)}}


def _with_metadata(node: ClusterNode, **changes: Mapping[str, str]) -> ClusterNode:
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, **changes))


def _with_resources(node: ClusterNode, capacity: Mapping[str, str], allocatable: Mapping[str, str]) -> ClusterNode:
    if (capacity, allocatable) == (node.status.capacity, node.status.allocatable):
        return node
    status = msgspec.structs.replace(node.status, capacity=capacity, allocatable=allocatable)
    return msgspec.structs.replace(node, status=status)
