"""Resources in the statuses of containers and pods: what they were allocated, and what they have. Pure.

Mirrors convertContainerStatusResources (pkg/kubelet/kubelet_pods.go). What a container has is what it was made with or
given last, which Podman has accepted: upstream asks its runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_containers import ContainerKind
from ipc.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.kubecontainer.resize import Actuated, resources_given, resources_now
from ipc.podresources.allocation import update_pod_from_allocation, with_amounts_of
from ipc.podresources.pod_requests import effective_resources


def container_resource_fields(
    kind: ContainerKind, container: Container, seen: RuntimeContainerStatus | None, actuated: Actuated
) -> Mapping[str, Any]:
    """Fields of a ContainerStatus; none for an ephemeral container, which is allocated nothing. ``container`` has the
    resources that it was allocated."""
    if kind is ContainerKind.EPHEMERAL:
        return {}
    runs = seen is not None and seen.state is ContainerState.RUNNING
    given = resources_given(seen, actuated) if seen is not None and runs else None
    return {
        "allocated_resources": container.resources.requests,
        "resources": with_amounts_of(container.resources, given),
    }


def pod_resource_fields(pod: Pod, observed: RuntimePodStatus, actuated: Actuated) -> Mapping[str, Any]:
    """Fields of a PodStatus: what the pod was allocated in all, and what it has; none of a pod that asks for nothing.

    Source: convertToAPIPodLevelResourcesStatus, which reads the pod's cgroup where this adds up what Podman was given.
    """
    allocated = effective_resources(pod)
    if not (allocated.requests or allocated.limits):
        return {}
    now = resources_now(pod, observed, actuated)
    return {
        "allocated_resources": allocated.requests,
        "resources": effective_resources(update_pod_from_allocation(pod, now)),
    }
