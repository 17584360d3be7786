"""Answers of pod workers: ends of syncs (pkg/kubelet/pod_workers.go, completeWork), and what a sync asks for."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.kubecontainer.pod_failure import EVICTED, PodFailure
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import BeginningKept, SyncDone, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.desired.resizes import Resizes
from supervisor.loop import requeue
from supervisor.managers.container_gc import removal_failures
from supervisor.managers.image_pulls import ImagePulls, PullEvent
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_kills import PodKills
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue
from supervisor.protocol.commands import RestsOn
from supervisor.protocol.events import BeginningRequest
from supervisor.record.status_manager import StatusManager

EVICTION_GRACE_PERIOD_S: Final = 1
"""pkg/kubelet/eviction/eviction_manager.go, immediateEvictionGracePeriodSeconds."""


class Answered(msgspec.Struct, frozen=True, eq=False):
    """Tells the owners of pods' state what was done for each."""

    _node: ThisNode
    _pod_table: PodTable
    _observation_requests: ObservationRequests
    _queue: WorkQueue
    _crashes: CrashAttribution
    _ended: EndedContainers
    _pulls: ImagePulls
    _statuses: StatusManager
    _kills: PodKills
    _pauses: PodPauses
    _resizes: Resizes
    _reporter: PodReporter
    _out: CommandBuffer
    _rng: random.Random

    def on_sync_done(self, done: SyncDone, now: Instant) -> None:
        state = self._pod_table.get(done.uid)
        if state is None or not state.lifecycle.answered_by(done):
            return
        if self._statuses.is_news(state.uid, done):
            self._reporter.sync_ended(state, done)
        flight = state.lifecycle.done(done)
        self._note_acts(state, done, flight.kind, now)
        state.parts.pull_failures = done.pull_failures
        self._statuses.sync_ended(state, done)
        if not done.cancelled and done.error is not SyncError.STALE_VIEW:
            self._crashes.sync_completed(state.slot, state.uid)
        self._pod_table.touch((state.uid, *self._crashes.suspects()))
        for report in removal_failures(self._node.view.settings.node_name, state.name, done):
            self._reporter.event(report, now)
        self._resizes.sync_ended(state, done, now)
        self._pauses.sync_ended(state, done, now)
        if done.evicted and state.lifecycle.phase is WorkType.SYNC:
            self._evict(state, done.evicted, now)
        self._requeue(state, done, now)
        if flight.kind is WorkType.SYNC and _is_shown_by_view(done):
            self._reporter.report_with_view(state, now)
        else:
            self._reporter.report(state, now)

    def _note_acts(self, state: PodRecord, done: SyncDone, kind: WorkType, now: Instant) -> None:
        """Have what the sync may have changed observed anew."""
        with_effect = kind is not WorkType.SYNC or _may_have_touched(done)
        self._observation_requests.acted(state.uid, now.mono, with_effect=with_effect)
        if with_effect:
            self._pod_table.note_activity(state)
        self._ended.removed(state.uid, done.effects.removed)
        if done.changed:
            self._observation_requests.touched(state.uid, done.effects)

    def _evict(self, state: PodRecord, why: str, now: Instant) -> None:
        """The pod takes more than it may: it fails and goes down at once (eviction_manager.go, evictPod)."""
        failure = PodFailure(reason=EVICTED, message=why)
        self._kills.end(state, failure, EVICTION_GRACE_PERIOD_S, evict=True)
        self._reporter.pod_event(state, event_reasons.EVICTED, why, now)

    def _requeue(self, state: PodRecord, done: SyncDone, now: Instant) -> None:
        due = requeue.due_in(done, now, self._node.view.settings, self._rng, len(self._pod_table))
        if due > 0.0:
            self._queue.enqueue(state.uid, now.mono + due)
        else:
            state.lifecycle.resync()

    def on_pull(self, event: PullEvent, now: Instant) -> None:
        """A worker asks for an image, or the node worker answers; the tick ends what takes too long."""
        self._out.send_all(self._pulls.handle(event, now.mono))

    def on_beginning(self, asked: BeginningRequest, now: Instant) -> None:
        """Remember the run, and let it begin when that is on the disk."""
        run, uid = asked.request.container, asked.request.uid
        if uid in self._pod_table:
            self._ended.begins(uid, run, now.mono)
        self._out.send(asked.slot, BeginningKept(uid=uid, id=run.id), RestsOn(ends=self._ended.version))


def _is_shown_by_view(done: SyncDone) -> bool:
    """Whether the observation that is due after a sync shows all there is to report of it."""
    return done.changed and not (done.cancelled or done.error or done.failed or done.evicted or done.actuated)


def _may_have_touched(done: SyncDone) -> bool:
    """Whether what was seen before it may be no longer so."""
    return done.changed or done.cancelled or bool(done.error or done.failed)
