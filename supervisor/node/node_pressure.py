"""Eviction by pressure on the node (pkg/kubelet/eviction/eviction_manager.go), as a part of the sync loop.

The node worker tells what it observes while a threshold is met. A round decides which thresholds count and which
conditions the node has; then what nobody needs is removed, what each pod uses is measured, and if that has not helped
one pod goes. Nothing else begins until nothing is left of it, or until that takes too long.

Different from upstream on purpose: pods are measured after the node was cleaned up, not before; of a pod only what is
running can be evicted; no second pod goes for a disk before a period has passed; and of wanted pods the newest
container of each name stays (`supervisor.managers.container_gc`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.file_systems import Reclaim, ways_to_reclaim
from ipc.k8s.eviction.signals import MEMORY, PIDS, resource_of
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.eviction.usage import PodUsage
from ipc.k8s.kubecontainer.pod_failure import EVICTED, PodFailure
from ipc.link.messages import event_reasons
from ipc.link.messages.base import node_event
from ipc.link.messages.node_worker import NodeObserved, ObserveNode
from ipc.link.messages.pod_worker import WorkType
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.eviction.rounds import most_urgent_first
from supervisor.eviction.victim import Eviction, eviction
from supervisor.managers.container_gc import ALL_DEAD, dead_of_each
from supervisor.node.pressure_conditions import PERIOD_S, PressureConditions
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_kills import PodKill, PodKills
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.record.status_manager import StatusManager

CLEANUP_S: Final = 30.0
"""An evicted pod's removal is waited for so long (podCleanupTimeout)."""
FREED_AT_ONCE: Final = frozenset({MEMORY, PIDS})
"""Resources that nobody has any more of a pod that is gone. File systems free what was removed in the background, and
what others write for a moment (a pull) is no reason for a second pod either: for disks a whole period passes."""
MEASURE_S: Final = 60.0
"""The node worker measures pods within so long; one that dies meanwhile does not answer."""


CollectImages = Callable[[Callable[[Instant], None], Instant], None]
"""Begins to remove all unused images; what it is given is called once, at the end."""


class _Reclaiming(msgspec.Struct, frozen=True):
    """Dead containers and unused images are being removed."""

    until: float
    """Monotonic seconds. As long as a call of the runtime may take: images wait until a pull has given the storage
    back, and a pod that goes meanwhile goes for nothing."""
    resource: str
    ways: frozenset[Reclaim]
    containers: dict[str, tuple[str, ...]]
    """UID -> ids."""
    round: int
    """Number of the eviction."""


class _Measuring(msgspec.Struct, frozen=True):
    """The node worker was asked what each pod uses."""

    until: float
    number: int
    reclaimed: frozenset[Reclaim]


class _CleaningUp(msgspec.Struct, frozen=True):
    """A pod goes."""

    until: float
    uid: str
    resource: str


class NodePressureManager(msgspec.Struct, eq=False):
    """Owns the eviction under way."""

    _node: ThisNode
    _conditions: PressureConditions
    _pod_table: PodTable
    _cache: PodCache
    _statuses: StatusManager
    _kills: PodKills
    _reporter: PodReporter
    _out: CommandBuffer
    _is_all_known: Callable[[], bool]
    _collect_images: CollectImages
    _number: int = 0
    """Number of the newest request to the node worker, or of the newest eviction."""
    _stage: _Reclaiming | _Measuring | _CleaningUp | None = None
    _disks_freed_at: float = 0.0
    """Monotonic time before which nobody goes for a disk."""
    _images_pending: int = 0
    """Number of the eviction whose unused images are being removed; 0 for none."""

    def on_node_observed(self, seen: NodeObserved, now: Instant) -> None:
        """A round. While an eviction is under way it only says what the node's conditions are."""
        due = self._conditions.observed(seen, now)
        stage = self._stage
        if isinstance(stage, _Measuring) and stage.number == seen.answers:
            self._stage = None
            self._choose(seen, stage.reclaimed, now)
        elif stage is None and due and self._is_all_known() and not self._waits_for_others(due[0], now):
            self._begin(due[0], now)

    def _waits_for_others(self, due: Threshold, now: Instant) -> bool:
        """Pods that go because an agent before this one has evicted them, or by limits of their own, free something,
        too: the next round is after each of them (synchronize, which ends when localStorageEviction has found any)."""
        resource = resource_of(due.signal)
        if resource not in FREED_AT_ONCE and now.mono < self._disks_freed_at:
            return True
        for state in self._pod_table:
            failure = self._statuses.eviction(state.uid)
            is_going = failure is not None and failure.reason == EVICTED and not state.lifecycle.finished
            if is_going and not state.parts.is_clean_up_awaited:
                self._await_clean_up(state, state.lifecycle.grace_period_s or 0, resource, now)
                return True
        return False

    def _await_clean_up(self, state: PodRecord, grace_period_s: int, resource: str, now: Instant) -> None:
        """Nobody else goes before nothing is left of that pod, or that takes too long."""
        state.parts.is_clean_up_awaited = True
        self._stage = _CleaningUp(now.mono + grace_period_s + CLEANUP_S, state.uid, resource)

    # --- one eviction ---

    def _begin(self, threshold: Threshold, now: Instant) -> None:
        """Free what nobody needs (reclaimNodeLevelResources), then have the pods measured."""
        resource = resource_of(threshold.signal)
        words = f"Attempting to reclaim {resource}"
        event = node_event(self._node.view.settings.node_name, event_reasons.EVICTION_THRESHOLD_MET, words)
        self._reporter.event(event, now)
        self._reporter.log("warning", f"node pressure, {threshold.signal}: {words}")
        ways = ways_to_reclaim(threshold.signal, self._conditions.layout)
        self._number += 1
        dead = self._remove_dead_containers(now) if Reclaim.CONTAINERS in ways else {}
        until = now.mono + self._node.view.settings.runtime_request_timeout_s
        self._stage = _Reclaiming(until, resource, frozenset(ways), dead, self._number)
        if Reclaim.IMAGES in ways:
            number = self._images_pending = self._number
            self._collect_images(lambda _: self._images_collected(number), now)

    def _images_collected(self, number: int) -> None:
        if self._images_pending == number:
            self._images_pending = 0

    def _remove_dead_containers(self, now: Instant) -> dict[str, tuple[str, ...]]:
        """By uid: ids of those that go with the next sync of their pods."""
        dead, _ = dead_of_each(self._cache.statuses(), self._pod_table.wanted(), ALL_DEAD, now.wall)
        for uid, ids in dead.items():
            if (state := self._pod_table.get(uid)) is not None:
                state.lifecycle.collect(ids)
                self._pod_table.touch((uid,))
        return dead

    def settle(self, now: Instant) -> None:
        """Go on with the eviction under way, if what it waits for has come, or does not."""
        stage = self._stage
        is_late = stage is not None and stage.until <= now.mono
        match stage:
            case _Reclaiming(resource=resource, ways=ways) if is_late or not self._is_reclaiming(stage):
                self._number += 1
                self._stage = _Measuring(now.mono + MEASURE_S, self._number, ways)
                self._out.to_node(ObserveNode(number=self._number, resource=resource))
            case _Measuring() if is_late:
                self._stage = None
            case _CleaningUp(uid=uid, resource=resource) if is_late or self._is_cleaned_up(uid):
                self._stage = None
                if resource in FREED_AT_ONCE:
                    self._number += 1
                    self._out.to_node(ObserveNode(number=self._number))
                else:
                    self._disks_freed_at = now.mono + PERIOD_S
            case _:
                return

    def _is_reclaiming(self, stage: _Reclaiming) -> bool:
        return self._images_pending == stage.round or any(self._left(stage))

    def _left(self, stage: _Reclaiming) -> Iterator[str]:
        """Ids of dead containers that are still there."""
        for uid, ids in stage.containers.items():
            status = self._cache.get(uid)
            there = {container.id for container in status.containers if not container.is_remembered}
            yield from there.intersection(ids)

    def _is_cleaned_up(self, uid: str) -> bool:
        """Neither containers nor volumes are left of it (PodIsFinished)."""
        state = self._pod_table.get(uid)
        return state is None or (state.lifecycle.finished and not self._kills.is_awaited(uid))

    def _choose(self, seen: NodeObserved, reclaimed: Set[Reclaim], now: Instant) -> None:
        """Evict one pod, unless there is enough of everything by now, or nobody knows what pods use. Where something
        else is short by now, of which nothing was reclaimed, that comes first."""
        due = most_urgent_first(self._conditions.state.met)
        if not due or seen.pods is None or not self._is_all_known():
            return
        if not reclaimed >= set(ways_to_reclaim(due[0].signal, self._conditions.layout)):
            self._begin(due[0], now)
            return
        usage = {each.uid: each for each in seen.pods}
        found = self._eviction(due, usage)
        if found is None:
            self._reporter.log("warning", "node pressure: there is no pod that may be evicted")
            return
        for threshold in due:
            age_s = now.wall - self._conditions.state.observations[threshold.signal].time
            METERS.histogram(metrics.EVICTION_STATS_AGE, threshold.signal).observe(max(0.0, age_s))
        METERS.counter(metrics.EVICTIONS, due[0].signal).inc()
        self._evict(found, resource_of(due[0].signal), now)

    def _eviction(self, due: tuple[Threshold, ...], usage: dict[str, PodUsage]) -> Eviction | None:
        max_grace_s = self._node.view.settings.eviction_max_pod_grace_period
        return eviction(
            due, self._conditions.state.observations, self._candidates(), usage, self._conditions.layout, max_grace_s
        )

    def _candidates(self) -> Iterator[Pod]:
        """Pods of which something runs, and that do not go down already."""
        for state in self._pod_table:
            lifecycle = state.lifecycle
            is_active = lifecycle.active and lifecycle.phase is WorkType.SYNC
            if state.pod is not None and is_active and self._cache.get(state.uid).is_running():
                yield state.pod

    def _evict(self, found: Eviction, resource: str, now: Instant) -> None:
        state, words = self._pod_table.get(found.uid), found.message.text
        assert state is not None
        kill = PodKill(
            failure=PodFailure(reason=EVICTED, message=words, disruption=words),
            grace_period_s=found.grace_period_s,
            event=event_reasons.EVICTED,
            annotations=found.message.annotations,
        )
        self._await_clean_up(state, found.grace_period_s, resource, now)
        self._kills.kill(state, kill, now)
