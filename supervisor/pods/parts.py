"""Parts of what the master knows of a pod, one for each subject. One module owns a part: it alone replaces it.

A part is there before the pod is wanted, where Podman, a checkpoint or a cluster tells of the pod first; it goes with
the pod.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.kubecontainer.remembered_ends import NO_RECORD, RememberedPod
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.redaction import Blocks
from ipc.link.eventloop.tasks import FailureLog
from ipc.link.messages.pod_worker import NO_EFFECTS, Freeze, ProbePod, PullFailure, SyncEffects
from supervisor.pods.next_step import Wait
from supervisor.state.resources_checkpoint import PodResources
from supervisor.status.status_record import NO_STATUS, StatusRecord


class CacheEntry(msgspec.Struct, frozen=True):
    """A view of a pod. Owner: `supervisor.pods.cache`."""

    status: RuntimePodStatus
    observed_at: float
    """Monotonic seconds."""
    row: int
    """The board row that holds the same content; -1 when it did not fit."""


class Acts(msgspec.Struct, frozen=True):
    """Acts on a pod, and how far observations have followed them. Owner: `supervisor.pods.observation_requests`."""

    at: float = 0.0
    """When the pod was last acted on, monotonic seconds: no view observed before may be acted on."""
    with_effect_at: float = 0.0
    """The last act that had any effect, as far as is known."""
    untold: SyncEffects = NO_EFFECTS
    """Effects of which the next request tells."""
    was_unsure: bool = False
    """The node worker was told that an act may have touched more: a new one does not know."""
    is_asked: bool = False
    """An observation was requested, and is still to come."""
    was_asked_before: bool = False
    """Of a node worker that is gone: the first relist of the next one is to answer."""
    needed: int = 0
    """Number of the request that tells of the last act; 0 when it was seen. An observation that does not know of it
    lacks what the act has made, however late it was."""


class Readable(msgspec.Struct, frozen=True):
    """An observation without the values of Secrets, and what of: statuses are generated more often than pods change.
    Owner: `supervisor.record.pod_texts`."""

    view: RuntimePodStatus
    known: tuple[Blocks, ...] | None
    made: RuntimePodStatus


class HoldUp(msgspec.Struct, frozen=True):
    """Why something that is due is not done. Owner: `supervisor.pods.held_up`."""

    wait: Wait | None = None
    """Reason and end of the wait, as the last try has found them."""
    reported: str = ""
    """Reason that was reported."""
    is_lasting: bool = False
    """The wait was there at the last tick."""
    is_noted: bool = False
    """The next tick looks at it."""


class PauseRequest(msgspec.Struct, frozen=True):
    """Pause or resume that somebody waits for. Owner: `supervisor.podcontrol.pod_pauses`."""

    freeze: Freeze
    ticket: int


class Reporting(msgspec.Struct, frozen=True):
    """Reports of a pod that are still to be made. Owner: `supervisor.podcontrol.pod_reporter`."""

    failures: FailureLog | None = None
    """Failures to generate the status, since it was generated last."""
    retry_at: float = math.inf
    """When that is tried again, monotonic seconds."""
    is_due: bool = False
    """With the end of this event."""
    is_put_off: bool = False
    """The pod is of a batch, and has no status yet."""
    view_until: float = math.inf
    """Until when the end of a sync waits for its observation, monotonic seconds."""

    @property
    def due_again_at(self) -> float:
        """When the status is generated again without any event, monotonic seconds."""
        return min(self.retry_at, self.view_until)


class WorkerCrashes(msgspec.Struct, frozen=True):
    """Crashes of workers that are the pod's doing, or may be. Owner: `supervisor.pods.crash_attribution`."""

    crashes: int = 0
    """In a row."""
    is_located: bool = False
    """A worker has died in a step for the pod: a crash elsewhere does not clear it."""
    is_suspect: bool = False
    is_quarantined: bool = False
    attributed: int = 0
    """Crashes that were attributed to the pod, since it was last to be tried again."""
    isolated_until: float = 0.0
    remembered_until: float = 0.0
    """When this is forgotten."""


class PlannedSlice(msgspec.Struct, frozen=True):
    """A pod as the last plan of slices has it. Owner: `supervisor.node.pod_cgroups`."""

    pod: Pod
    milli_cpu: int
    """Thousandths of a CPU for which it asks, if it is burstable."""


class Probing(msgspec.Struct, frozen=True, eq=False):
    """Worker that probes the pod. Owner: `supervisor.managers.probe_manager`."""

    worker: int | None = None
    """Its slot."""
    sent: ProbePod | None = None
    """Command that it was sent last, without results."""
    running: tuple[str, ...] = ()
    """Ids of the containers that ran then."""
    leaving: int | None = None
    """Slot of the worker that was told to stop and has not said that it has."""


class Removal(msgspec.Struct, frozen=True):
    """The pod is removed as soon as enough is known of what is wanted and what runs. Owner:
    `supervisor.podcontrol.removals`."""

    grace_period_s: int | None


class Preemption(msgspec.Struct, frozen=True):
    """Part that the pod has in preemptions. Owner: `supervisor.desired.pod_admission`."""

    is_victim: bool = False
    """It was preempted, and has not ended."""
    victims: frozenset[str] = frozenset()
    """UIDs of the victims for whose end it waits."""


class Load(msgspec.Struct, frozen=True):
    """Objects that the sync in flight carries. Owner: `supervisor.managers.object_delivery`."""

    slot: int
    size_bytes: int


NOT_HELD_UP: Final = HoldUp()
NOTHING_TO_REPORT: Final = Reporting()
NO_RESULTS: Final[Mapping[str, ProbeResults]] = MappingProxyType({})
NO_CRASHES: Final = WorkerCrashes()
NOT_PROBED: Final = Probing()
NO_PREEMPTION: Final = Preemption()
NO_LOAD: Final = Load(0, 0)
NO_ACTS: Final = Acts()


class PodParts(msgspec.Struct):
    """All parts of one pod."""

    is_tracked: bool = False
    """The pod has a record. Owner: `supervisor.pods.parts`."""
    view: CacheEntry | None = None
    """Newest view of the pod."""
    is_view_lost: bool = False
    """A newer view was lost on its way: nothing is certain until the next one, whatever a relist says. Owner:
    `supervisor.pods.cache`."""
    acts: Acts = NO_ACTS
    next_sync_at: float | None = None
    """When a sync is due that no event asks for, monotonic seconds. Owner: `supervisor.pods.work_queue`."""
    hold_up: HoldUp = NOT_HELD_UP
    reporting: Reporting = NOTHING_TO_REPORT
    status: StatusRecord = NO_STATUS
    """Its status, as it is generated and as it is reported. Owner: `supervisor.record.status_manager`."""
    readable: Readable | None = None
    probe_results: Mapping[str, ProbeResults] = NO_RESULTS
    """Results of the probes of its containers, by container id. Owner: `supervisor.managers.probe_manager`."""
    probing: Probing = NOT_PROBED
    preemption: Preemption = NO_PREEMPTION
    evicted_before: PodFailure | None = None
    """Why an earlier agent has evicted the pod, until a source states it. Owner: `supervisor.desired.pod_updates`."""
    removal: Removal | None = None
    is_newcomer: bool = False
    """The pod was stated while an interrupted shutdown was looked into. It may have begun to end: no sync may start
    anything of it again. Owner: `supervisor.node.node_shutdown`."""
    is_clean_up_awaited: bool = False
    """The pod was evicted, and its clean-up is waited for, or was. Owner: `supervisor.node.node_pressure`."""
    is_unwarned: bool = False
    """The pod is of a batch, and its fields were not reported on yet. Owner: `supervisor.desired.pod_admission`."""
    pause: PauseRequest | None = None
    restarts: dict[str, int | None] = {}
    """Containers that are to be replaced, by id, with the grace period in seconds that was asked for. Owner:
    `supervisor.podcontrol.container_restarts`."""
    runs: RememberedPod = NO_RECORD
    """Runs of the pod's containers, remembered beyond these. Owner: `supervisor.pods.ended_containers`."""
    runs_version: int = 0
    """Version of the newest change of these. Owner: `supervisor.pods.ended_containers`."""
    are_runs_stale: bool = False
    """A sync has died with its worker, and may have removed containers. Owner:
    `supervisor.pods.ended_containers`."""
    resources: PodResources | None = None
    """Resources that the pod was allocated, and that its containers were given. Owner:
    `supervisor.managers.allocation`."""
    are_resources_stale: bool = False
    """Resources of the containers may be others than these. Owner: `supervisor.managers.allocation`."""
    crashes: WorkerCrashes = NO_CRASHES
    pull_failures: tuple[PullFailure, ...] = ()
    """Back-off of the pod's images, as its last sync has left it. Owner: `supervisor.loop.answered`."""
    planned_slice: PlannedSlice | None = None
    load: Load = NO_LOAD
    cluster_values: ClusterValues | None = None
    """Values that a cluster gives to the pod beside objects. Owner: `supervisor.desired.object_updates`."""
    is_incomplete: bool = False
    """The node worker still reads something that the pod refers to. Owner: `supervisor.desired.object_updates`."""


UNKNOWN_POD: Final = PodParts()
"""Parts of a pod of which nothing is known; nobody changes these."""


Forgotten = Callable[[str, PodParts], None]
"""Takes the UID of a pod and the parts that it had."""


class KnownPods:
    """Parts by UID: of the pods of the table, and of those that are known before they are wanted."""

    def __init__(self) -> None:
        self._by_uid: dict[str, PodParts] = {}
        self._watchers: list[Forgotten] = []
        self._tracked = 0

    def of(self, uid: str) -> PodParts:
        """Parts of that pod, to change: it is known from now on."""
        parts = self._by_uid.get(uid)
        if parts is None:
            parts = self._by_uid[uid] = PodParts()
        return parts

    def track(self, uid: str) -> PodParts:
        """Parts of a pod that has a record from now on."""
        parts = self.of(uid)
        self._tracked += not parts.is_tracked
        parts.is_tracked = True
        return parts

    def find(self, uid: str) -> PodParts:
        """Parts of that pod, to read."""
        return self._by_uid.get(uid, UNKNOWN_POD)

    def items(self) -> Iterable[tuple[str, PodParts]]:
        """UIDs and parts of all pods."""
        return self._by_uid.items()

    def untracked(self) -> Sequence[tuple[str, PodParts]]:
        """UIDs and parts of the pods that have no record. While there is none, no other costs anything."""
        if self._tracked == len(self._by_uid):
            return ()
        return [(uid, parts) for uid, parts in self._by_uid.items() if not parts.is_tracked]

    def forget(self, uid: str, *, is_stated: bool = False) -> None:
        """Nothing of the pod is left. ``is_stated``: a source may state it still or again, and what its cluster says of
        it holds on, as does what Podman shows of a pod without a record."""
        if (parts := self._by_uid.pop(uid, None)) is None:
            return
        self._tracked -= parts.is_tracked
        for forgotten in self._watchers:
            forgotten(uid, parts)
        view = parts.view if not parts.is_tracked else None
        kept = PodParts(view=view, cluster_values=parts.cluster_values, is_incomplete=parts.is_incomplete)
        if is_stated and kept != UNKNOWN_POD:
            self._by_uid[uid] = kept

    def forget_unwanted(self) -> None:
        """Every source was read: of a pod that none wants only that is kept which Podman or a cluster say."""
        for uid, _ in self.untracked():
            self.forget(uid, is_stated=True)

    def on_forget(self, forgotten: Forgotten) -> None:
        """Call that for each pod that is forgotten: somebody counts these parts, or keeps them in a file."""
        self._watchers.append(forgotten)

    def tidy(self, uid: str) -> None:
        """Forget a pod of which nothing is known any more."""
        if self._by_uid.get(uid) == UNKNOWN_POD:
            del self._by_uid[uid]
