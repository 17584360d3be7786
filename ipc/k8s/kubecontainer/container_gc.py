"""Dead containers and sandboxes that are too many: pure, for the workers' decision and for the whole node.

Mirrors evictContainers and evictSandboxes (pkg/kubelet/kuberuntime/kuberuntime_gc.go). Different on purpose:

- only what has exited is counted and goes. A container that was never started is started yet, and one whose state is
  unknown is killed by its pod's decision, after which it has exited (upstream kills it here);
- the newest container of each name is spared in a pod that is wanted, whatever the policy says: without it a job that
  is done would run again, and a crashing container would start without its back-off. Upstream has its API server to
  remember the first and its memory the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, SandboxState, SandboxStatus

NO_LIMIT: Final = -1
"""Any negative number means this."""

_Units = dict[tuple[str, str], list[RuntimeContainerStatus]]
"""(pod UID, container name) -> its dead containers, newest first (containersByEvictUnit)."""


class GcPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """pkg/kubelet/container/container_gc.go, GCPolicy."""

    max_per_pod_container: int = 1
    """Dead containers kept of each container of a pod."""
    max_containers: int = NO_LIMIT
    """Dead containers kept on the whole node."""
    min_age_s: float = 0.0
    """One that was created less than so many seconds ago is neither counted nor removed."""


class PodStates(msgspec.Struct, frozen=True, kw_only=True):
    """Pods' states, which their containers alone do not tell (podStateProvider)."""

    deleted: Collection[str] = frozenset()
    """UIDs of pods of which nothing may stay."""
    ended: Collection[str] = frozenset()
    """UIDs of pods that will never run again."""
    evict_ended: bool = False
    """Not even the logs of those that ended may stay (upstream: when the disk is full)."""

    def lose_everything(self, uid: str) -> bool:
        return uid in self.deleted or (self.evict_ended and uid in self.ended)


def dead_to_remove(containers: Iterable[RuntimeContainerStatus], policy: GcPolicy, now_wall: float) -> tuple[str, ...]:
    """Ids of the containers of one wanted pod that are too many of their name; oldest first."""
    containers = tuple(containers)
    units = evictable_containers({"": containers}, policy, now_wall)
    removed = _enforce_per_unit(units, policy.max_per_pod_container, newest_ids(containers))
    return tuple(container.id for container in removed)


def newest_ids(containers: Iterable[RuntimeContainerStatus]) -> frozenset[str]:
    """Ids of the newest container of each name, in any state."""
    newest: dict[str, RuntimeContainerStatus] = {}
    for container in sorted(containers, key=_age_order):
        newest[container.name] = container
    return frozenset(container.id for container in newest.values())


def evict_containers(
    pods: Mapping[str, Sequence[RuntimeContainerStatus]],
    states: PodStates,
    policy: GcPolicy,
    now_wall: float,
    *,
    all_sources_ready: bool,
    spared: Collection[str] = (),
) -> tuple[str, ...]:
    """Ids of the containers that have to go, of all pods of the node; ``pods``: UID -> containers.

    All of those that lose everything; then of each container what is beyond its maximum; then what is beyond the
    node's, spread evenly over the containers as far as that goes, the oldest first after that. Those ``spared`` are
    counted and stay.
    """
    units = evictable_containers(pods, policy, now_wall)
    removed = []
    if all_sources_ready:
        for unit in [unit for unit in units if states.lose_everything(unit[0])]:
            removed += units.pop(unit)[::-1]
    removed += _enforce_per_unit(units, policy.max_per_pod_container, spared)
    removed += _enforce_total(units, policy.max_containers, spared)
    return tuple(container.id for container in removed)


def evict_sandboxes(sandboxes: Iterable[SandboxStatus], needed: Collection[str], *, all_of_them: bool) -> list[str]:
    """Ids of one pod's sandboxes that have to go, oldest first: never one that is ready or still ``needed``, because it
    has containers; and the newest one only with ``all_of_them``."""
    newest_first = sorted(sandboxes, key=lambda sandbox: (sandbox.attempt, sandbox.created_at), reverse=True)
    candidates = newest_first if all_of_them else newest_first[1:]
    return [s.id for s in reversed(candidates) if s.state is not SandboxState.READY and s.id not in needed]


def evictable_containers(
    pods: Mapping[str, Iterable[RuntimeContainerStatus]], policy: GcPolicy, now_wall: float
) -> _Units:
    """The dead that are old enough."""
    units: _Units = {}
    for uid, containers in pods.items():
        for container in sorted(containers, key=_age_order, reverse=True):
            if container.state is ContainerState.EXITED and container.created_at <= now_wall - policy.min_age_s:
                units.setdefault((uid, container.name), []).append(container)
    return units


def _enforce_per_unit(units: _Units, maximum: int, spared: Collection[str]) -> list[RuntimeContainerStatus]:
    """Take what is beyond the maximum out of each unit (enforceMaxContainersPerEvictUnit)."""
    removed = []
    for unit, dead in units.items() if maximum >= 0 else ():
        beyond = [container for container in dead[maximum:] if container.id not in spared]
        units[unit] = [container for container in dead if container not in beyond]
        removed += beyond[::-1]
    return removed


def _enforce_total(units: _Units, maximum: int, spared: Collection[str]) -> list[RuntimeContainerStatus]:
    count = sum(map(len, units.values()))
    if maximum < 0 or count <= maximum:
        return []
    removed = _enforce_per_unit(units, max(1, maximum // len(units)), spared)
    left = sorted((c for c in chain.from_iterable(units.values()) if c.id not in spared), key=_age_order)
    return removed + left[: max(0, count - len(removed) - maximum)]


def _age_order(container: RuntimeContainerStatus) -> tuple[int, float]:
    """Oldest first (byAttempt, reversed)."""
    return container.attempt, container.created_at
