"""Containers and sandboxes that are prunable: superseded ones that run, dead containers, empty sandboxes. Pure.

Upstream leaves the dead to container garbage collection, once a minute, but for init containers
(pruneInitContainersBeforeStart and purgeInitContainers, pkg/kubelet/kuberuntime/kuberuntime_container.go).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator

import msgspec

from ipc.k8s.api.pod_containers import ContainerKind, every_container, find_container
from ipc.k8s.api.v1.container import Container as ApiContainer
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.kubecontainer.container_gc import dead_to_remove, evict_sandboxes
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxStatus
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ALIVE, ContainerKill, kill_of
from workers.compute.types import DecisionInput
from workers.kubecontainer.overrides import is_unnoticed_end


def strays(given: DecisionInput) -> tuple[ContainerKill, ...]:
    """Kills of containers that run and are not the newest of their name in the sandbox. They are also removed."""
    return tuple(
        msgspec.structs.replace(
            kill_of(given.pod, c, None, KillReason.NONE, f"Container {c.name} {why}"),
            remove=not _is_last_trace(given, c),
        )
        for c in given.status.containers
        if c.state in ALIVE and (why := _why_stray(given, c))
    )


def _why_stray(given: DecisionInput, container: RuntimeContainerStatus) -> str:
    if find_container(given.pod.spec, container.name) is None:
        return "is not part of the pod"
    if not given.is_inside(container):
        return "runs outside of the pod's sandbox"
    newest = given.status.newest(container.name)
    return "runs beside its successor" if newest is not None and newest.id != container.id else ""


def _is_last_trace(given: DecisionInput, container: RuntimeContainerStatus) -> bool:
    """Whether an ephemeral container has no other trace, without which it would start a second time."""
    found, newest = find_container(given.pod.spec, container.name), given.status.newest(container.name)
    return found is not None and found.kind is ContainerKind.EPHEMERAL and newest is container


# --- the dead ----------------------------------------------------------------------------------------------------


def dead_containers(given: DecisionInput, keep_ids: Container[str]) -> tuple[RuntimeContainerStatus, ...]:
    """Dead containers to remove (CGC-07). ``keep_ids``: containers that this decision goes on with."""
    if all(c.state in ALIVE for c in given.status.containers):
        return ()
    too_many = given.dead_containers.union(dead_to_remove(given.status.containers, given.gc, given.now_wall))
    names = [found.container.name for found in every_container(given.pod.spec)]
    kept = {kept.id for name in names for kept in _kept_dead(given, name, too_many)}
    return tuple(
        c for c in given.status.containers if c.state not in ALIVE and c.id not in kept and c.id not in keep_ids
    )


def _kept_dead(given: DecisionInput, name: str, too_many: Container[str]) -> Iterator[RuntimeContainerStatus]:
    """Exited containers that stay: of those that are too many only the newest of its name, which says that and how it
    ended, how often, and when it may start again. So it is with one that runs for Podman: everybody else takes it for
    a twin."""
    newest = given.status.newest(name)
    return (c for c in _exited(given, name) if c is newest or not (c.id in too_many or is_unnoticed_end(c)))


def _exited(given: DecisionInput, name: str) -> Iterator[RuntimeContainerStatus]:
    """Newest first; in an old sandbox only as long as nothing newer of that name is in the sandbox."""
    has_successor = False
    for container in given.status.of_name(name):
        inside = given.is_inside(container)
        if container.state is ContainerState.EXITED and (inside or not has_successor):
            yield container
        has_successor |= inside


def empty_sandboxes(given: DecisionInput, removed_ids: Collection[str]) -> tuple[SandboxStatus, ...]:
    """Old sandboxes whose every container goes."""
    there = (c for c in given.status.containers if not c.is_remembered)
    needed = {c.sandbox_id for c in there if c.id not in removed_ids}
    evicted = evict_sandboxes(given.status.sandboxes, needed, all_of_them=False)
    return tuple(s for s in given.status.sandboxes if s.id in evicted)


# --- init containers, before others of them are made -------------------------------------------------------------


def prune_init_containers(spec: PodSpec, status: RuntimePodStatus) -> tuple[RuntimeContainerStatus, ...]:
    """Init containers that are over, but for the newest of each name (kuberuntime_container.go,
    pruneInitContainersBeforeStart)."""
    dead = (ContainerState.EXITED, ContainerState.UNKNOWN)
    over = [c for c in _runs_of(spec.init_containers, status) if c.state in dead]
    newest = {c.name: c.id for c in reversed(over)}
    return tuple(c for c in over if c.id != newest[c.name])


def purge_init_containers(
    left: Iterable[ApiContainer], status: RuntimePodStatus, waiting: Container[str]
) -> tuple[RuntimeContainerStatus, ...]:
    """Every init container that the next sandbox has to see: they begin anew (kuberuntime_container.go,
    purgeInitContainers).

    Not the newest of those names that are ``waiting``: it says how long. Oldest first: the newest left says which
    attempt is next.
    """
    all_of_them = reversed(_runs_of(left, status))
    return tuple(c for c in all_of_them if c.name not in waiting or c is not status.newest(c.name))


def _runs_of(containers: Iterable[ApiContainer], status: RuntimePodStatus) -> list[RuntimeContainerStatus]:
    names = {container.name for container in containers}
    return [container for container in status.containers if container.name in names]
