"""Messages of the events of resizes (pkg/kubelet/events/pod_resize.go, podResizeMessage). Pure."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod


class _Allocation(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    resources: ResourceRequirements = ResourceRequirements()


class _Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """podResourceSummary. The pod's own resources, which upstream leaves out, stand at the end."""

    init_containers: list[_Allocation] = msgspec.field(default_factory=list, name="initContainers")
    containers: list[_Allocation] = msgspec.field(default_factory=list)
    generation: int
    error: str = ""
    resources: ResourceRequirements | None = None


def resize_message(what: str, pod: Pod, generation: int, error: str = "") -> str:
    """``what``: started, completed, error, or why it is put off."""
    summary = _Summary(
        init_containers=_allocations(pod.spec.init_containers),
        containers=_allocations(pod.spec.containers),
        generation=generation,
        error=error,
        resources=pod.spec.resources,
    )
    # Amounts by name, as Go writes a map, whichever order the manifest has.
    return f"Pod resize {what}: {msgspec.json.encode(summary, order='deterministic').decode()}"


def _allocations(containers: tuple[Container, ...]) -> list[_Allocation]:
    """Containers that ask for nothing stand there with their name alone, as upstream's do with no resources."""
    return [_Allocation(container.name, container.resources) for container in containers]
