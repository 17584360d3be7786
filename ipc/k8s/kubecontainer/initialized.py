"""Whether a pod's init containers are behind it, told by its regular containers."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState


def has_any_regular_container_started(spec: PodSpec, statuses: Iterable[ContainerStatus]) -> bool:
    """Whether a regular container has started by what was reported, whatever sandbox that was
    (pkg/kubelet/container/helpers.go)."""
    names = {container.name for container in spec.containers}
    return any(
        status.name in names and (status.state.running is not None or status.state.terminated is not None)
        for status in statuses
    )


def has_any_active_regular_container_started(spec: PodSpec, status: RuntimePodStatus) -> bool:
    """Whether a regular container was observed in the sandbox that serves now (pkg/kubelet/container/helpers.go).

    A regular container is made only once initialization is done, so any state of one proves it.
    """
    inside = _names_inside(status)
    return any(container.name in inside for container in spec.containers)


def passed_init_containers(spec: PodSpec, status: RuntimePodStatus) -> frozenset[str]:
    """Names of the init containers after which another was observed in the sandbox that serves now: they are done, or
    look so."""
    names, inside = [container.name for container in spec.init_containers], _names_inside(status)
    last = next((place for place in reversed(range(len(names))) if names[place] in inside), 0)
    return frozenset(names[:last])


def _names_inside(status: RuntimePodStatus) -> Set[str]:
    """Names of the containers in the sandbox that serves now."""
    if not status.sandboxes or status.sandboxes[0].state is not SandboxState.READY:
        return frozenset()
    active_id = status.sandboxes[0].id
    return {container.name for container in status.containers if container.sandbox_id == active_id}
