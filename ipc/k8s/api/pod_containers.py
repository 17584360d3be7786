"""The containers of a pod whatever list they stand in: their names are unique across all three."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.status import ContainerStatus, PodStatus


class ContainerKind(enum.StrEnum):
    """List of the spec in which a container stands; the value is that list's JSON name."""

    INIT = "initContainers"
    """Sidecars (restartable init containers) too."""
    REGULAR = "containers"
    EPHEMERAL = "ephemeralContainers"


class PodContainer(msgspec.Struct, frozen=True):
    """One container of a pod's spec and where it stands."""

    kind: ContainerKind
    container: Container


def every_container(spec: PodSpec) -> Iterator[PodContainer]:
    """Init containers in order, regular ones, ephemeral ones (pkg/api/v1/pod/util.go, VisitContainers)."""
    lists = (
        (ContainerKind.INIT, spec.init_containers),
        (ContainerKind.REGULAR, spec.containers),
        (ContainerKind.EPHEMERAL, spec.ephemeral_containers),
    )
    return (PodContainer(kind, container) for kind, containers in lists for container in containers)


def find_container(spec: PodSpec, name: str) -> PodContainer | None:
    """The container of that name, or None."""
    return next((found for found in every_container(spec) if found.container.name == name), None)


def every_status(status: PodStatus) -> tuple[ContainerStatus, ...]:
    """Statuses of a pod's containers of all kinds, regular ones first."""
    return (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)


def field_path(spec: PodSpec | None, name: str) -> str:
    """``spec.containers{name}``, as an event refers to a container (pkg/kubelet/container/ref.go, fieldPath).

    A container that the spec does not have (any more), or whose spec nobody has, counts as a regular one.
    """
    found = find_container(spec, name) if spec is not None else None
    kind = found.kind if found is not None else ContainerKind.REGULAR
    return f"spec.{kind}{{{name}}}"


def container_type(spec: PodSpec, name: str) -> str:
    """Label ``container_type`` of metrics; what the spec does not have (any more) counts as a regular one
    (pkg/kubelet/metrics/metrics.go)."""
    found = find_container(spec, name)
    return _TYPES[found.kind if found is not None else ContainerKind.REGULAR]


_TYPES: Final = {
    ContainerKind.INIT: "init_container",
    ContainerKind.REGULAR: "container",
    ContainerKind.EPHEMERAL: "ephemeral_container",
}
