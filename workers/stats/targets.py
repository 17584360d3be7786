"""Pods and containers to measure: those that run something, by their newest observations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState
from workers.fs.directories import is_name
from workers.kubecontainer.runtime import InspectedContainer

Inspected = Callable[[str], InspectedContainer | None]
"""Newest inspect of a container by its id."""


class PodDirectories(msgspec.Struct, frozen=True, kw_only=True):
    """Directories in which the files of all pods lie."""

    pods: str
    logs: str
    memory: str = ""
    """For volumes that must not reach a disk."""


class ContainerTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A running container."""

    id: str
    name: str
    attempt: int
    image: str
    pid: int
    start_ticks: int
    """Start of its first process, in ticks; 0 when it is not known."""
    started_at: float
    layer: str
    """Directory of its writable layer; empty when the storage driver has none."""


class PodTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a running sandbox or container."""

    uid: str
    name: str
    namespace: str
    started_at: float
    host_network: bool
    infra: ContainerTarget | None
    containers: tuple[ContainerTarget, ...]

    @property
    def members(self) -> tuple[ContainerTarget, ...]:
        """Every container that runs, the infra container last."""
        return (*self.containers, self.infra) if self.infra is not None else self.containers


def targets_of(statuses: Iterable[RuntimePodStatus], inspected: Inspected) -> Iterator[PodTarget]:
    """Pods that run something, by uid. Names that cannot be a directory's are somebody else's."""
    for status in sorted(statuses, key=lambda status: status.uid):
        if not all(map(is_name, (status.uid, status.name, status.namespace))):
            continue
        containers = tuple(_containers(status, inspected))
        infra = _infra(status, inspected)
        if containers or infra is not None:
            sandbox = status.sandboxes[0] if status.sandboxes else None
            yield PodTarget(
                uid=status.uid,
                name=status.name,
                namespace=status.namespace,
                started_at=infra.started_at if infra is not None else min(c.started_at for c in containers),
                host_network=sandbox is None or sandbox.host_network,
                infra=infra,
                containers=containers,
            )


def _containers(status: RuntimePodStatus, inspected: Inspected) -> Iterator[ContainerTarget]:
    for container in status.containers:
        if container.state is not ContainerState.RUNNING or container.pid <= 0 or not is_name(container.name):
            continue
        found = inspected(container.id)
        is_same = found is not None and found.pid == container.pid
        yield ContainerTarget(
            id=container.id,
            name=container.name,
            attempt=container.attempt,
            image=container.image,
            pid=container.pid,
            start_ticks=found.start_ticks if found is not None and is_same else 0,
            started_at=container.started_at,
            layer=found.layer if found is not None else "",
        )


def _infra(status: RuntimePodStatus, inspected: Inspected) -> ContainerTarget | None:
    sandbox = status.sandboxes[0] if status.sandboxes else None
    if sandbox is None or sandbox.state is not SandboxState.READY or sandbox.infra_pid <= 0:
        return None
    found = inspected(sandbox.infra_id)
    return ContainerTarget(
        id=sandbox.infra_id,
        name="",
        attempt=sandbox.attempt,
        image="",
        pid=sandbox.infra_pid,
        start_ticks=sandbox.infra_start_ticks,
        started_at=found.started_at if found is not None else sandbox.created_at,
        layer="",
    )
