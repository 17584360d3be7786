"""Pressure on the simulated node: its thresholds, the rules of eviction, and pods that take too much."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.eviction.file_systems import Layout
from ipc.k8s.eviction.signals import NodePressure, Signal
from ipc.k8s.nodestatus.node import NodeCondition
from ipc.k8s.scheduling.priority import SYSTEM_CRITICAL_PRIORITY, is_critical
from ipc.link.messages.node_worker import CollectImages, ImagesCollected, NodeObserved, ObserveNode
from ipc.link.messages.pod_worker import SyncPod, WorkType
from supervisor.config.settings import Seconds, Settings
from supervisor.node.node_pressure import MEASURE_S
from supervisor.node.pressure_conditions import PERIOD_S
from tests.sim.host import CAPACITY, MIB, VOLUME, SimHost, Taken
from tests.sim.pods import PRESENT
from tests.sim.runtime import SimPodman, uid_of
from tests.sim.trace import Trace

LEAST: Final[Mapping[Signal, int]] = {
    Signal.MEMORY_AVAILABLE: 100 * MIB,
    Signal.PID_AVAILABLE: 1000,
    Signal.NODEFS_AVAILABLE: 1000 * MIB,
    Signal.NODEFS_INODES_FREE: 30_000,
    Signal.IMAGEFS_AVAILABLE: 1000 * MIB,
    Signal.IMAGEFS_INODES_FREE: 30_000,
}
"""Below which there is pressure at once."""
SOFT: Final = 300 * MIB
"""Memory below which there is pressure, and after `GRACE_S` somebody goes."""
GRACE_S: Final = 25.0
RECLAIM: Final = 50 * MIB
"""So much more has to be free on nodefs."""
TRANSITION_S: Final = 20.0
ROUND_S: Final = 12.0
"""Longest time between two looks at a node under pressure, and what a message may take."""
CLEANUP_S: Final = 30.0
"""An evicted pod is waited for so long, beside its grace period."""
CONDITION_OF: Final[Mapping[Signal, NodePressure]] = {
    Signal.MEMORY_AVAILABLE: NodePressure.MEMORY,
    Signal.PID_AVAILABLE: NodePressure.PID,
    Signal.NODEFS_AVAILABLE: NodePressure.DISK,
    Signal.NODEFS_INODES_FREE: NodePressure.DISK,
    Signal.IMAGEFS_AVAILABLE: NodePressure.DISK,
    Signal.IMAGEFS_INODES_FREE: NodePressure.DISK,
}

CRITICAL: Final = "0000aaaa-steady"
HOGS: Final = ("0000bbbb-hog", "0000bbbc-hog")
LATECOMER: Final = "0000dddd-late"
IMAGE_USER: Final = "0000eeee-image"
LARGE_IMAGE: Final = "registry.test/large:1"
IMAGE_AGE_S: Final = 5.0
"""Younger ones stay."""
EVICTED_S: Final = 2 * (Settings().runtime_request_timeout_s + CLEANUP_S + MEASURE_S + PERIOD_S)
"""Within which two pods are evicted, one after the other: dead containers go, each after the sync of its pod, pods are
measured, and the evicted one is cleaned up."""


def with_thresholds(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings,
        eviction_hard={signal.value: str(least) for signal, least in LEAST.items()},
        eviction_soft={Signal.MEMORY_AVAILABLE.value: str(SOFT)},
        eviction_soft_grace_period={Signal.MEMORY_AVAILABLE.value: f"{GRACE_S:g}s"},
        eviction_max_pod_grace_period=5,
        eviction_minimum_reclaim={Signal.NODEFS_AVAILABLE.value: str(RECLAIM)},
        eviction_pressure_transition_period_s=Seconds(TRANSITION_S),
        image_minimum_gc_age_s=Seconds(IMAGE_AGE_S),
    )


def simple_pod(uid: str, *, priority: int = 0, image: str = PRESENT, memory: str = "") -> Pod:
    """A pod that runs for ever and does nothing."""
    resources = ResourceRequirements(requests={"memory": memory} if memory else {})
    spec = PodSpec(
        containers=(Container(name="one", image=image, args=("serve",), resources=resources),),
        restart_policy="Always",
        termination_grace_period_seconds=5,
        priority=priority,
        volumes=(Volume(name=VOLUME, empty_dir=EmptyDirVolumeSource()),),
    )
    return Pod(metadata=ObjectMeta(name=uid.rpartition("-")[2] + uid[:8], namespace="default", uid=uid), spec=spec)


def critical_pod() -> Pod:
    return simple_pod(CRITICAL, priority=SYSTEM_CRITICAL_PRIORITY)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the node comes under pressure while all else is quiet."""

    taken: Taken
    hogs: Mapping[str, int]
    """Priority of each pod that takes too much, in the order in which they have to go."""
    kills_agent: bool
    """When the first of them goes."""

    def amounts(self, host: SimHost) -> dict[str, int]:
        """Memory of each hog: one of them is enough for pressure. The one that has the higher priority takes more."""
        signal = host.signal_of(self.taken)
        needed = host.available(signal) - LEAST[signal] + 1
        return {uid: needed + number * LEAST[signal] // 8 for number, uid in enumerate(self.hogs)}


def plan(rng: random.Random) -> Plan:
    """Priorities below those of all others: of two pods that both take more than they asked for the lower one goes."""
    hogs = {HOGS[0]: -10, HOGS[1]: -5}
    return Plan(
        taken=rng.choice(tuple(Taken)),
        hogs=hogs if rng.random() < 0.5 else {HOGS[0]: -10},
        kills_agent=rng.random() < 0.3,
    )


def has_conditions(conditions: Iterable[NodeCondition]) -> bool:
    return any(condition.status == "True" for condition in conditions)


class Marks:
    """Pods of whose eviction something was done: they stay down, whatever becomes of agents."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.uids: set[str] = set()

    def acted(self, request: SyncPod | None) -> None:
        """Something was done to a pod on behalf of that sync, also of a preempted one."""
        if request is not None and request.evicted is not None:
            self.uids.add(request.uid)

    def gone(self, uid: str) -> None:
        """Nothing is left of the pod: one that comes under that uid is another one."""
        self.uids.discard(uid)

    def check(self, sync: SyncPod) -> None:
        if sync.kind is WorkType.SYNC and sync.uid in self.uids:
            self._trace.broke(f"{sync.uid[:8]} was evicted, and is synced to run again")


class _Going(msgspec.Struct, frozen=True):
    uid: str
    until: float


class PressureWatch:
    """The rules of one agent's life; knows nothing of how the product decides."""

    def __init__(self, trace: Trace, clock: Clock, podman: SimPodman, host: SimHost) -> None:
        self._trace = trace
        self._clock = clock
        self._podman = podman
        self._host = host
        self._seen: NodeObserved | None = None
        self._seen_at = 0.0
        self.is_possible = False
        """The node may have pressure."""
        self._met_at: dict[NodePressure, float] = {}
        """When each was observed last, at the least."""
        self._maybe_met_at: dict[NodePressure, float] = {}
        """... and at the most, with what is to be reclaimed besides."""
        self._refusing_since: dict[bool, float] = {}
        """Since when all pods (False: only those without requests) are refused, without a gap."""
        self.evicted: list[str] = []
        """In their order."""
        self.restored: set[str] = set()
        """Evicted by an agent before."""
        self._evicted_uids: set[str] = set()
        """Evicted pods out of those that are still there."""
        self._going: _Going | None = None
        self._came_at: dict[str, float] = {}
        """Pods that were stated and not synced yet."""
        self._collecting = 0
        self._collected_at = -1.0
        self._collection_began_at = -1.0
        self._measured_at = -1.0
        self._last_eviction_at = 0.0

    # --- told ---

    def observed(self, seen: NodeObserved) -> None:
        """Takes effect with the next look at the conditions."""
        now = self._now
        for kind in self._short(self._seen, 0):  # it was looked at again and again since
            self._met_at[kind] = max(self._seen_at, now - ROUND_S)
        for kind in self._short(self._seen, RECLAIM):
            self._maybe_met_at[kind] = now
        self._seen, self._seen_at, self.is_possible = seen, now, True
        self._note_met()

    def _note_met(self) -> None:
        self._met_at |= dict.fromkeys(self._short(self._seen, 0), self._seen_at)
        self._maybe_met_at |= dict.fromkeys(self._short(self._seen, RECLAIM), self._now)

    def _short(self, seen: NodeObserved | None, reclaim: int) -> set[NodePressure]:
        return {CONDITION_OF[signal] for signal in self._short_of(seen, reclaim)}

    @staticmethod
    def _short_of(seen: NodeObserved | None, reclaim: int) -> set[Signal]:
        found = set()
        for signal, least in LEAST.items():
            observed = seen.signals.get(signal) if seen is not None else None
            if signal is Signal.MEMORY_AVAILABLE:
                least = SOFT
            elif signal is Signal.NODEFS_AVAILABLE:
                least += reclaim
            if observed is not None and observed.available < least:
                found.add(signal)
        return found

    def conditions(self, conditions: tuple[NodeCondition, ...]) -> None:
        """Take the conditions of the node, after every event."""
        self._note_met()
        now = self._now
        actual = {NodePressure(each.type) for each in conditions if each.status == "True"}
        must = {kind for kind, at in self._met_at.items() if now - at < TRANSITION_S}
        may = {kind for kind, at in self._maybe_met_at.items() if now - at < TRANSITION_S + ROUND_S}
        if not must <= actual <= may:
            self._trace.broke(f"the node has {sorted(actual)}, must have {sorted(must)} and may have {sorted(may)}")
        self._maybe_met_at = {kind: at for kind, at in self._maybe_met_at.items() if kind in may or kind in actual}
        self.is_possible = bool(self._maybe_met_at)
        self._refuse(all_pods=bool(actual - {NodePressure.MEMORY}), some=bool(actual))

    def _refuse(self, *, all_pods: bool, some: bool) -> None:
        for is_all, is_refusing in ((True, all_pods), (False, some)):
            if not is_refusing:
                self._refusing_since.pop(is_all, None)
            else:
                self._refusing_since.setdefault(is_all, self._now)

    def gone(self, uid: str) -> None:
        """Nothing is left of the pod; another one may come under that uid."""
        self.restored.discard(uid)
        self._evicted_uids.discard(uid)
        if self._going is not None and self._going.uid == uid:
            self._going = None

    def comes(self, pod: Pod) -> None:
        """A pod is stated of which nothing runs: one that does was there before the pressure."""
        uid = pod.metadata.uid
        if not any(uid_of(each) == uid and each.state == "running" for each in self._podman.containers.values()):
            self._came_at[uid] = self._now

    def asks(self, message: Any) -> None:
        """The master asks the node worker."""
        match message:
            case CollectImages(number=number, all_unused=True):
                self._collecting, self._collection_began_at = number, self._now
            case ObserveNode(resource=resource) if resource:
                self._measured_at = self._now

    def collected(self, message: ImagesCollected) -> None:
        if message.number == self._collecting:
            self._collected_at = self._now

    def node_worker_died(self) -> None:
        """Then the collection has come to its end, too."""
        self._collected_at = self._now

    # --- rules ---

    def sync(self, sync: SyncPod) -> None:
        came_at = self._came_at.pop(sync.uid, None)
        if came_at is not None and sync.kind is WorkType.SYNC and sync.pod is not None:
            self._check_admission(sync.pod, came_at)

    def evicts(self, pod: Pod, grace_period_s: int) -> None:
        """Told of every pod that was evicted, from the moment of the decision on."""
        uid = pod.metadata.uid
        if uid in self._evicted_uids or uid in self.restored:
            return
        self._check_eviction(pod, grace_period_s)
        self._evicted_uids.add(uid)
        self.evicted.append(uid)

    def _check_admission(self, pod: Pod, came_at: float) -> None:
        """Nobody begins who came under pressure, but for the critical, and under that of memory those who say how much
        they need."""
        has_requests = any(each.resources.requests or each.resources.limits for each in pod.spec.containers)
        since = self._refusing_since.get(has_requests)
        if since is not None and since <= came_at and not is_critical(pod):
            self._trace.broke(f"{pod.metadata.uid[:8]} begins under pressure")

    def _check_eviction(self, pod: Pod, grace_period_s: int) -> None:
        uid, now = pod.metadata.uid, self._now
        self._trace.note(f"{uid[:8]} is evicted")
        if is_critical(pod):
            self._trace.broke(f"{uid[:8]} is critical, and evicted")
        if not self._short_of(self._seen, RECLAIM):
            self._trace.broke(f"{uid[:8]} is evicted, and there is enough of everything")
        before = self._going
        if before is not None and now < before.until and self._runs(before.uid):
            self._trace.broke(f"{uid[:8]} is evicted while {before.uid[:8]} still goes")
        if self._measured_at <= self._last_eviction_at:
            self._trace.broke(f"{uid[:8]} is evicted, and nobody has measured anything for that")
        if self._is_reclaimable() and not self._is_reclaimed():
            self._trace.broke(f"{uid[:8]} is evicted before unused images were removed")
        self._last_eviction_at = now
        self._going = _Going(uid, now + grace_period_s + CLEANUP_S)

    def _runs(self, uid: str) -> bool:
        """Whether anything of that pod runs: the dead stay, and take nothing that is short."""
        return any(container.state == "running" for container in self._podman.of_pod(uid))

    def _is_reclaimable(self) -> bool:
        """Only disks are short, and images lie on all of those that are."""
        short = self._short_of(self._seen, RECLAIM)
        if self._host.layout is Layout.ONE:
            return short <= {*_DISKS}
        return short <= {Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE}

    def _is_reclaimed(self) -> bool:
        """Since the last pod went; or it has taken too long."""
        began = self._collection_began_at
        is_over = self._collected_at >= began or self._now >= began + CLEANUP_S
        return began >= self._last_eviction_at and is_over

    @property
    def _now(self) -> float:
        return self._clock.now().mono


_DISKS: Final = frozenset(CAPACITY) - {Signal.MEMORY_AVAILABLE, Signal.PID_AVAILABLE}
