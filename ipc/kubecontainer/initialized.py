"""Whether a pod's init containers are behind it, told by its regular containers."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ipc.api.v1.pod import PodSpec
from ipc.api.v1.status import ContainerStatus
from ipc.kubecontainer.pod_status import RuntimePodStatus, SandboxState


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
    return _is_any_inside({container.name for container in spec.containers}, status)


def has_begun_behind(spec: PodSpec, status: RuntimePodStatus, name: str) -> bool:
    """Whether an init container after that one was observed in the sandbox that serves now: it is done, or looks so."""
    names = [container.name for container in spec.init_containers]
    return name in names and _is_any_inside(set(names[names.index(name) + 1 :]), status)


def _is_any_inside(names: Set[str], status: RuntimePodStatus) -> bool:
    if not status.sandboxes or status.sandboxes[0].state is not SandboxState.READY:
        return False
    active_id = status.sandboxes[0].id
    return any(container.name in names and container.sandbox_id == active_id for container in status.containers)
