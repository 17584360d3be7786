"""The life of one pod: sync -> terminating -> terminated (pkg/kubelet/pod_workers.go, podSyncStatus).

A machine without I/O. It answers one question, *which work comes next*, and keeps the rules that make the answer safe:
at most one sync in flight, the latest desired pod wins, a kill is never overwritten, a grace period only shrinks.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.api.v1.pod import Pod
from ipc.api.v1.status import PodStatus
from ipc.host.clock import Instant
from ipc.kubecontainer.config_objects import ObjectRef, referenced_objects
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.kubecontainer.probe_results import ProbeResults
from ipc.messages.pod_worker import PullFailure, SyncDone, SyncResult, WorkType
from ipc.text.redaction import Blocks
from supervisor.status.active_deadline import past_active_deadline
from supervisor.status.generate import Failure

MINIMUM_GRACE_PERIOD_S = 1
"""PW-10: a grace period of zero means this one."""
EVICTED = "Evicted"
"""Reason of the pod's status and of the event (pkg/kubelet/eviction/helpers.go)."""
EVICTION_GRACE_PERIOD_S = 1
"""pkg/kubelet/eviction/eviction_manager.go, immediateEvictionGracePeriodSeconds."""


class InFlight(msgspec.Struct, frozen=True):
    """A SyncPod that was sent and not yet answered."""

    slot: int
    incarnation: int
    generation: int
    kind: WorkType
    remove: bool


class Readable(msgspec.Struct, frozen=True):
    """An observation without the values of Secrets, and what of: statuses are generated more often than pods change."""

    view: RuntimePodStatus
    known: tuple[Blocks, ...] | None
    made: RuntimePodStatus


def effective_grace_period(pod: Pod, override_s: int | None, current_s: int | None) -> int:
    """Seconds that the pod's containers get to stop (pkg/kubelet/pod_workers.go, calculateEffectiveGracePeriod).

    The smallest of what was asked for so far wins, zero included; the spec's own counts only if nothing was asked
    for; never below one second.
    """
    asked = [s for s in (current_s, pod.metadata.deletion_grace_period_seconds, override_s) if s is not None]
    return max(min(asked, default=pod.spec.termination_grace_period_seconds or 0), MINIMUM_GRACE_PERIOD_S)


def _references(pod: Pod | None) -> frozenset[ObjectRef]:
    return referenced_objects(pod) if pod is not None else frozenset()


def _failed(done: SyncDone) -> tuple[SyncResult, ...]:
    return tuple(result for result in done.results if result.error)


def _may_have_touched(done: SyncDone) -> bool:
    """Whether what was seen before it may be no longer so."""
    return done.changed or done.cancelled or bool(done.error or _failed(done))


class PodLifecycle:
    """What the master knows of one UID beyond its desired spec and its observation."""

    def __init__(self, uid: str, pod: Pod | None, source: str, slot: int, row: int, acted_at: float) -> None:
        self.uid = uid
        self.pod = pod
        """None for an orphan."""
        self.references = _references(pod)
        """The ConfigMaps and Secrets that it refers to."""
        self.all_references = self.references
        """Those that it has referred to since it is known here: its containers may still have them."""
        self.name = f"{pod.metadata.namespace}/{pod.metadata.name}" if pod is not None else uid
        self.source = source
        self.slot = slot
        """The pod worker that owns it."""
        self.row = row
        self.acted_at = acted_at
        """No view observed before this (monotonic) may be acted on."""
        self._touched_at = acted_at
        """When it was last acted on with any effect, as far as is known."""
        self.phase = WorkType.SYNC
        self.pending = True
        self.in_flight: InFlight | None = None
        self.removed = False
        """No longer wanted: nothing of it may stay."""
        self.cleaned = False
        """TERMINATED was carried out as it is wanted now; a fresh view ends it."""
        self.finished = False
        """Nothing is left to do, unless something of it runs again."""
        self.garbage: tuple[str, ...] = ()
        """Ids of dead containers that its next sync takes away, whatever else it does; one that is finished gets a sync
        for them alone."""
        self.grace_period_s: int | None = None
        self.deletion_wall = 0.0
        """When it was removed, in epoch seconds; 0.0 while it is wanted."""
        self.rejection: Failure | None = None
        """Why it was not admitted."""
        self.eviction: Failure | None = None
        """Why it may not run any more."""
        self.successor: Pod | None = None
        """Wanted again under the same UID while it is still going down (PW-08)."""
        self.status: PodStatus | None = None
        """What is acted on."""
        self.told: PodStatus | None = None
        """What the world knows: a terminal phase comes later there."""
        self.readable: Readable | None = None
        """What it was observed to be, as it may be told (`supervisor.record.pod_texts`)."""
        self.looked_at = False
        """Its status was generated from an observation once."""
        self.summary = ""
        self.failed: tuple[SyncResult, ...] = ()
        """What its last sync could not do."""
        self.error = ""
        """Why its last sync failed as a whole."""
        self.pull_failures: tuple[PullFailure, ...] = ()
        """Back-off of its images, as its last sync has left it."""
        self.probe_results: Mapping[str, ProbeResults] = {}
        """What the probes of its containers say, by container id."""
        self._generation = 0
        self._clock_offset_s: float | None = None
        """From the monotonic to the wall clock, when that was first asked for."""

    @property
    def active(self) -> bool:
        """Counts against maxPods and host ports."""
        return self.pod is not None and not self.finished and self.rejection is None and not self.removed

    def update(self, pod: Pod) -> None:
        """A newer desired pod. Once it goes down, only that matters."""
        self.pod = pod
        self.references = _references(pod)
        self.all_references |= self.references
        if self.phase is WorkType.SYNC:
            self.pending = True

    def resync(self) -> None:
        """Its next sync is due. When the last one found nothing to do, what was seen before that is as true as it was,
        and nobody has to look for the sake of this one. Upstream wants a newer view all the same, which its relist
        every second has at hand (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        if not self.pending:
            self.acted_at = self._touched_at
        self.pending = True

    def terminate(self, grace_override_s: int | None = None) -> bool:
        """Go down, or go down sooner. True when the sync in flight is in the way."""
        if self.phase is WorkType.TERMINATED:
            return False
        before = self.grace_period_s
        self.grace_period_s = self._effective_grace_period(grace_override_s)
        shortened = self.grace_period_s is not None and (before is None or self.grace_period_s < before)
        first = self.phase is WorkType.SYNC
        self.phase = WorkType.TERMINATING
        self.pending = self.pending or first or shortened
        return self.in_flight is not None and (first or shortened)

    def evict(self, message: str) -> None:
        """It takes more than it may: it fails and goes down at once (evictPod)."""
        self.eviction = Failure(reason=EVICTED, message=message)
        self.terminate(EVICTION_GRACE_PERIOD_S)

    def _effective_grace_period(self, override_s: int | None) -> int | None:
        """An orphan has what its labels say until somebody asks for less."""
        if self.pod is not None:
            return effective_grace_period(self.pod, override_s, self.grace_period_s)
        asked = [s for s in (self.grace_period_s, override_s) if s is not None]
        return max(min(asked), MINIMUM_GRACE_PERIOD_S) if asked else None

    def remove(self, grace_override_s: int | None, wall: float) -> bool:
        """Go down and leave nothing behind. True when the sync in flight is in the way."""
        self.cleaned = self.cleaned and self.removed
        self.removed = True
        self.deletion_wall = self.deletion_wall or wall
        if self.phase is WorkType.TERMINATED:
            self.finished = False
            self.pending = True
            return False
        return self.terminate(grace_override_s)

    def observed(self, *, running: bool) -> None:
        """Its view changed (isSyncPodWorthy). What was down for good and runs again is no longer finished."""
        self.finished = self.finished and not running
        self.pending = self.pending or not self.finished

    def settle(self, view: RuntimePodStatus) -> None:
        """What a fresh view decides of a pod that goes down: it still runs (or again), it is down, it is finished."""
        if self.phase is WorkType.SYNC:
            return
        self.phase = WorkType.TERMINATING if view.is_running() else WorkType.TERMINATED
        self.cleaned = self.cleaned and self.phase is WorkType.TERMINATED
        self.finished = self.cleaned and (view.is_empty() or not self.removed)

    def is_past_deadline(self, now: Instant) -> bool:
        """Its activeDeadlineSeconds are over, and nobody stops it yet (active_deadline.go, ShouldSync)."""
        start_time = self.status.start_time if self.status is not None else None
        return self.phase is WorkType.SYNC and past_active_deadline(self.pod, start_time, self.steady_wall(now))

    def steady_wall(self, now: Instant) -> float:
        """The wall clock, but not what it was set forward since the pod is known here: that was no time to be active
        in. Upstream's is the clock as it is."""
        if self._clock_offset_s is None:
            self._clock_offset_s = now.wall - now.mono
        return min(now.wall, now.mono + self._clock_offset_s)

    @property
    def at_rest(self) -> bool:
        """There is nothing to send a worker for."""
        return self.finished and (self.removed or not self.garbage)

    def wants_dispatch(self) -> bool:
        return self.pending and self.in_flight is None and not self.at_rest

    @property
    def can_move(self) -> bool:
        """Nothing of it is in its worker: no sync, and no preStop hook that a stop begun anew would find."""
        return self.in_flight is None and self.phase is not WorkType.TERMINATING

    def collect(self, garbage: tuple[str, ...]) -> None:
        """Dead containers of it that are too many on the node."""
        self.garbage = garbage
        self.pending = True

    def dispatched(self, slot: int, incarnation: int) -> InFlight:
        """A SyncPod goes out."""
        assert self.in_flight is None, "two syncs of one pod"
        self._generation += 1
        self.pending = False
        self.garbage = ()
        self.in_flight = InFlight(slot, incarnation, self._generation, self.phase, self.removed)
        return self.in_flight

    def answered_by(self, done: SyncDone) -> bool:
        """Is that the answer to what is in flight? A stale generation or incarnation is not."""
        flight = self.in_flight
        return flight is not None and (done.generation, done.incarnation) == (flight.generation, flight.incarnation)

    def is_news(self, done: SyncDone) -> bool:
        """Did it do anything, or fail otherwise than the last time? Waiting for the same time again is no news, nor is
        failing again for the same reason."""
        return done.changed or done.error != self.error or _failed(done) != self.failed

    def done(self, done: SyncDone, now_mono: float) -> None:
        """The sync ended, somehow. When it did what its phase is for, a fresh view says what comes next."""
        flight, self.in_flight = self.in_flight, None
        assert flight is not None
        self.pull_failures = done.pull_failures
        self.failed, self.error = _failed(done), done.error
        self.acted_at = now_mono
        if flight.kind is not WorkType.SYNC or _may_have_touched(done):
            self._touched_at = now_mono
        if done.changed or done.error or self.failed:
            self.summary = done.summary or done.message
        if done.error or done.cancelled or flight.kind is not self.phase:
            return
        self.cleaned = flight.kind is WorkType.TERMINATED and flight.remove == self.removed
        self.pending = self.pending or flight.kind is not WorkType.SYNC

    def lost(self, now_mono: float) -> None:
        """Its worker died and was reaped: what it did is unknown until somebody looks."""
        self.in_flight = None
        self.acted_at = self._touched_at = now_mono
        self.pending = True
