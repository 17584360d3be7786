"""Resources in the statuses of containers and pods: what they were allocated, and what they have. Pure.

Mirrors convertContainerStatusResources (pkg/kubelet/kubelet_pods.go). What a container has is what it was made with or
given last, which Podman has accepted: upstream asks its runtime.
"""

from __future__ import annotations

import msgspec

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.resize import Actuated, resources_given, resources_now
from ipc.k8s.podresources.allocation import update_pod_from_allocation, with_amounts_of
from ipc.k8s.podresources.pod_requests import effective_resources


class StatusResources(msgspec.Struct, frozen=True, kw_only=True):
    """``allocatedResources`` and ``resources`` of one status."""

    allocated: ResourceList = {}
    actual: ResourceRequirements | None = None


def container_status_resources(
    kind: ContainerKind, container: Container, seen: RuntimeContainerStatus | None, actuated: Actuated
) -> StatusResources:
    """Resources of a container, in its status; an ephemeral one is allocated none. ``container`` has those that it was
    allocated."""
    if kind is ContainerKind.EPHEMERAL:
        return StatusResources()
    runs = seen is not None and seen.state is ContainerState.RUNNING
    given = resources_given(seen, actuated) if seen is not None and runs else None
    return StatusResources(allocated=container.resources.requests, actual=with_amounts_of(container.resources, given))


def pod_status_resources(pod: Pod, observed: RuntimePodStatus, actuated: Actuated) -> StatusResources:
    """Resources of a pod, in its status: what it was allocated in all, and what it has; none if it asks for nothing.

    Source: convertToAPIPodLevelResourcesStatus, which reads the pod's cgroup where this adds up what Podman was given.
    """
    allocated = effective_resources(pod)
    if not (allocated.requests or allocated.limits):
        return StatusResources()
    now = update_pod_from_allocation(pod, resources_now(pod, observed, actuated))
    return StatusResources(allocated=allocated.requests, actual=allocated if now is pod else effective_resources(now))
