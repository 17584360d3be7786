"""Resources in the statuses of containers and pods: what they were allocated, and what they have. Pure.

Mirrors convertContainerStatusResources (pkg/kubelet/kubelet_pods.go). What a container has is what it was made with or
given last, which Podman has accepted: upstream asks its runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipc.api.v1.container import Container, ResourceRequirements
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_containers import ContainerKind
from ipc.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.kubecontainer.resize import Actuated, resources_given
from ipc.podresources.allocation import with_amounts_of


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
    """Fields of a PodStatus, of a pod that asks for resources as a whole."""
    own = pod.spec.resources
    if own is None:
        return {}
    sandbox = next(iter(observed.sandboxes), None)
    given: ResourceRequirements | None = None
    if sandbox is not None:
        given = actuated.get(sandbox.id, sandbox.resources)
    return {"allocated_resources": own.requests, "resources": with_amounts_of(own, given)}
