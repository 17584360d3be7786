"""Resources that were given to a pod, apart from what its manifest asks for by now. Pure.

Mirrors pkg/kubelet/allocation/allocation_manager.go (allocationFromPod, updatePodFromAllocation,
isResizeIncreasingRequests) and pkg/kubelet/allocation/state/state.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_requests

RESIZABLE: Final = (CPU, MEMORY)
"""Resources that a running container can be given more or less of; their amounts are its own and its pod's."""
NO_RESOURCES: Final = ResourceRequirements()

_C = TypeVar("_C", bound=Container)


class PodResourceInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resources of one pod: its own, and those of each of its containers and init containers."""

    pod_level_resources: ResourceRequirements | None = None
    container_resources: Mapping[str, ResourceRequirements] = {}


class ResourceAmounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Amounts that a container's cgroup is made of (kuberuntime_manager.go, containerResources): cpu in thousandths,
    memory in bytes; 0 is not set."""

    cpu_request: int = 0
    cpu_limit: int = 0
    memory_request: int = 0
    memory_limit: int = 0


def allocation_from_pod(pod: Pod) -> PodResourceInfo:
    """The resources that the pod's manifest asks for."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return PodResourceInfo(
        pod_level_resources=pod.spec.resources,
        container_resources={container.name: container.resources for container in containers},
    )


def update_pod_from_allocation(pod: Pod, allocated: PodResourceInfo) -> Pod:
    """The pod with its allocated resources; the pod itself where it asks for the same. A container that was not
    allocated any keeps those of the manifest."""
    init, regular = (_allocated(list, allocated) for list in (pod.spec.init_containers, pod.spec.containers))
    own = pod.spec.resources
    if not same_resources(own, allocated.pod_level_resources):
        own = allocated.pod_level_resources
    if init is pod.spec.init_containers and regular is pod.spec.containers and own is pod.spec.resources:
        return pod
    spec = msgspec.structs.replace(pod.spec, init_containers=init, containers=regular, resources=own)
    return msgspec.structs.replace(pod, spec=spec)


def _allocated(containers: tuple[_C, ...], allocated: PodResourceInfo) -> tuple[_C, ...]:
    found = tuple(_with(container, allocated.container_resources.get(container.name)) for container in containers)
    return containers if all(new is old for new, old in zip(found, containers, strict=True)) else found


def _with(container: _C, resources: ResourceRequirements | None) -> _C:
    if resources is None or same_resources(container.resources, resources):
        return container
    return msgspec.structs.replace(container, resources=resources)


def same_resources(left: ResourceRequirements | None, right: ResourceRequirements | None) -> bool:
    """Equal by value: 1 CPU is 1000m; and by what is absent: no limit is not a limit of 0."""
    if left is None or right is None:
        return left is right
    return left == right or (
        left.claims == right.claims and _same(left.limits, right.limits) and _same(left.requests, right.requests)
    )


def _same(left: ResourceList, right: ResourceList) -> bool:
    return left.keys() == right.keys() and all(
        left[name] == right[name] or parse_quantity(left[name]) == parse_quantity(right[name]) for name in left
    )


def resizable_part(resources: ResourceRequirements | None) -> ResourceRequirements:
    """The amounts among these that can change while a container runs."""
    if resources is None:
        return NO_RESOURCES
    limits, requests = (
        {name: amounts[name] for name in RESIZABLE if name in amounts}
        for amounts in (resources.limits, resources.requests)
    )
    return ResourceRequirements(limits=limits, requests=requests)


def with_amounts_of(resources: ResourceRequirements, given: ResourceRequirements | None) -> ResourceRequirements:
    """Resources with the cpu and memory of ``given``, unless that is None."""
    if given is None:
        return resources
    limits, requests = (
        {**{name: quantity for name, quantity in own.items() if name not in RESIZABLE}, **other}
        for own, other in ((resources.limits, given.limits), (resources.requests, given.requests))
    )
    return msgspec.structs.replace(resources, limits=limits, requests=requests)


def effective_limits(whole: ResourceRequirements | None, own: ResourceRequirements) -> ResourceList:
    """A container without a limit has the pod's, if it has one."""
    limits = whole.limits if whole is not None else {}
    return {**{name: limits[name] for name in RESIZABLE if name in limits}, **own.limits}


def resource_amounts(whole: ResourceRequirements | None, own: ResourceRequirements) -> ResourceAmounts:
    """Amounts of a container with those resources in a pod with these (kuberuntime_manager.go,
    computePodResizeAction)."""
    limits = effective_limits(whole, own)
    return ResourceAmounts(
        cpu_request=amount(own.requests, CPU),
        cpu_limit=amount(limits, CPU),
        memory_request=amount(own.requests, MEMORY),
        memory_limit=amount(limits, MEMORY),
    )


def same_compute(left: ResourceRequirements | None, right: ResourceRequirements | None) -> bool:
    """Whether both are the same in cpu and memory (kuberuntime_manager.go, cmpActuatedAllocated)."""
    return resource_amounts(None, left or NO_RESOURCES) == resource_amounts(None, right or NO_RESOURCES)


def is_resize_increasing_requests(before: Pod, after: Pod) -> bool:
    """Whether the pod asks for more cpu or memory than before, as far as the node counts it."""
    old, new = pod_requests(before), pod_requests(after)
    return any(new.get(name, 0) > old.get(name, 0) for name in RESIZABLE)
