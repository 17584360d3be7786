"""Handlers of desired pods: HandlePodAdditions, -Updates, -Removes and -Cleanups (pkg/kubelet/kubelet.go), and the
stop of all pods.

Different from upstream on purpose: an UPDATE passes admission too (nobody validated it before us) and a refused one
leaves the running pod as it is; orphans get the grace that their labels carry instead of one second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from ipc.api.annotations import API_SOURCE
from ipc.api.v1.pod import Pod
from ipc.api.v1.status import TERMINAL_PHASES
from ipc.host.clock import Instant
from ipc.kubecontainer.pod_failure import PodFailure
from ipc.log.entry import Subject
from ipc.messages import event_reasons
from ipc.messages.node_worker import Relist
from ipc.messages.pod_worker import WorkType
from ipc.metrics import kubelet as metrics
from ipc.scheduling.priority import pod_priority
from ipc.shm.metric_cells import METERS
from supervisor.loop.node_shutdown import NodeShutdown
from supervisor.loop.parts import LoopParts
from supervisor.loop.pod_admission import PodAdmission
from supervisor.loop.removals import Removals
from supervisor.loop.resizes import Resizes
from supervisor.managers.node_shutdown import ShutdownGroup, drain_classes, group_by_priority
from supervisor.pods.record import PodRecord
from supervisor.protocol.commands import PodsStopped, UpdateRefused
from supervisor.protocol.events import (
    EvictionsRestored,
    HousekeepingTick,
    KillPod,
    NodeShutdownCalledOff,
    SourcesReady,
    StopPods,
)
from supervisor.protocol.manifests import pod_key
from supervisor.protocol.source_updates import PodOperation, PodUpdate, admission_order

EVICTION_GRACE_PERIOD_S = 1
"""pkg/kubelet/eviction/eviction_manager.go, immediateEvictionGracePeriodSeconds."""
NOT_UPDATED = "update refused, the pod stays as it was"


class PodUpdates:
    """Begins to track pods and terminates them. Owns the removals that wait, and whether everything is to stop."""

    def __init__(self, parts: LoopParts, shutdown: NodeShutdown, resizes: Resizes) -> None:
        self._parts = parts
        self._resizes = resizes
        self._pod_table = parts.pod_table
        self._shutdown = shutdown
        self._announcer = parts.announcer
        self._out = parts.out
        self._removals = Removals()
        self.admission = PodAdmission(parts, shutdown)
        self._evicted: dict[str, PodFailure] = {}
        """By UID: why, of pods that an earlier agent has evicted and that no source has stated yet."""
        self._unwarned: list[PodRecord] = []
        """Pods of a batch whose fields were not reported on when they came."""
        self._stop_asked_at: float | None = None
        """Monotonic time of StopPods; infinite once it was answered."""
        self._stopping: deque[ShutdownGroup] = deque()
        """Pods that are stopped when nothing is left of ``_stopped``."""
        self._stopped: tuple[str, ...] = ()
        self._handlers: dict[PodOperation, Callable[[Pod, PodUpdate, Instant], None]] = {
            PodOperation.ADD: self._add,
            PodOperation.RESTORE: self._restore,
            PodOperation.UPDATE: self._update,
            PodOperation.RECONCILE: self._reconcile,
            PodOperation.REMOVE: self._remove,
            PodOperation.DELETE: self._delete,
        }

    @property
    def sources_ready(self) -> bool:
        """Every configured source was read completely once."""
        return self._removals.are_sources_ready

    @property
    def is_stopping(self) -> bool:
        """All pods are being stopped, whatever the sources say."""
        return self._stop_asked_at is not None

    def going_down(self, namespace: str, name: str) -> list[PodRecord]:
        """Pods of that name that were removed, or will be as soon as every source was read."""
        named = self._pod_table.named(namespace, name)
        return [state for state in named if state.lifecycle.removed or state.uid in self._removals]

    # --- the sources ---------------------------------------------------------------------------------------------

    def on_pod_update(self, update: PodUpdate, now: Instant) -> None:
        if self.is_stopping:
            return
        # Pods that an agent before has evicted are known before all others, who may have to wait for their room.
        for pod in sorted(update.pods, key=self._turn):
            self._handlers[update.op](pod, update, now)

    def statuses_due(self, now: Instant) -> None:
        """Say what was put off while others were on their way to their workers."""
        unwarned, self._unwarned = self._unwarned, []
        for state in unwarned:
            if state.parts.is_unwarned and state.pod is not None:
                self._warn(state, state.pod, now)
        self._announcer.report_batch(now)

    def _turn(self, pod: Pod) -> tuple[bool, tuple[int, float]]:
        return pod.metadata.uid not in self._evicted, admission_order(pod)

    def _add(self, pod: Pod, update: PodUpdate, now: Instant) -> None:
        self.add(pod, update.source, now, hurries=update.hurries)

    def add(self, pod: Pod, source: str, now: Instant, *, hurries: bool = False) -> None:
        """HandlePodAdditions: admission, then a lifecycle; a pod of that UID that still goes down ends first."""
        uid = pod.metadata.uid
        self._removals.withdraw(uid)
        state = self._pod_table.get(uid)
        if state is not None and not state.lifecycle.removed:
            self._change(state, pod, source, now)
        elif state is not None:
            METERS.counter(metrics.RESTARTED_PODS, "true").inc()
            state.succeed(pod, source)
        else:
            self._begin(pod, source, now, hurries)

    def _begin(self, stated: Pod, source: str, now: Instant, hurries: bool) -> None:
        """With the resources that it was allocated by an agent before this one, if it was (AddPod)."""
        self._parts.kills.begins_anew(stated.metadata.uid, now)
        pod = self._parts.allocations.allocated(stated)
        if stated.status.phase in TERMINAL_PHASES or stated.metadata.deletion_timestamp is not None:
            self._begin_going_down(pod, stated, source, now)
            return
        if evicted := self._evicted.pop(pod.metadata.uid, None):
            self.admission.evicted_before(self._track(pod, source), pod, evicted, now)
            return
        rejected = self.admission.admit_new(pod, now)
        state = self._track(pod, source)
        state.state(stated)
        if rejected is not None:
            self._parts.kills.reject(state, rejected, now)
            self._announcer.report_later(state)
            return
        self._allocate(state, pod, stated)
        if hurries and self._is_nothing_there(stated):
            state.parts.is_unwarned = True
            self._unwarned.append(state)
            self._announcer.put_off(state)
        else:
            self._warn(state, pod, now)
            self._announcer.report_later(state)

    def _is_nothing_there(self, pod: Pod) -> bool:
        """Whether nothing of the pod was ever told or seen, so that it can be nothing but Pending."""
        uid = pod.metadata.uid
        is_told = pod.status.start_time is not None or self._parts.statuses.status(uid) is not None
        return not is_told and self._parts.cache.get(uid).is_empty()

    def _restore(self, stated: Pod, update: PodUpdate, now: Instant) -> None:
        self._parts.statuses.restored(stated.metadata.uid)
        self._add(stated, update, now)

    def _begin_going_down(self, pod: Pod, stated: Pod, source: str, now: Instant) -> None:
        """A pod of a cluster that has ended for good, or is deleted, as it comes to be known here: it is not admitted,
        and what may be there of it ends (pkg/kubelet/pod_workers.go, UpdatePod)."""
        state = self._track(pod, source)
        state.state(stated)
        if stated.metadata.deletion_timestamp is not None:
            self._kill(state, stated.metadata.deletion_grace_period_seconds, now)
            return
        state.lifecycle.terminate()
        self._announcer.report(state, now)

    def _track(self, pod: Pod, source: str) -> PodRecord:
        return self._parts.tracking.begin(pod.metadata.uid, "/".join(pod_key(pod)), pod, source, 0.0)

    def _allocate(self, state: PodRecord, pod: Pod, stated: Pod) -> None:
        """The pod has what it was allocated; what it asks for besides is a resize."""
        self._parts.usage.put(pod)
        self._parts.allocations.allocate(pod)
        self._parts.devices.allocate(pod)
        self._resizes.stated(state, stated)
        self._resizes.wake()

    def _update(self, stated: Pod, update: PodUpdate, now: Instant) -> None:
        """HandlePodUpdates."""
        state = self._pod_table.get(stated.metadata.uid)
        if state is None or state.lifecycle.removed:
            self._add(stated, update, now)
        else:
            self._change(state, stated, update.source, now)

    def _change(self, state: PodRecord, stated: Pod, source: str, now: Instant) -> None:
        """A pod that was rejected gets another chance with its new spec."""
        if source == API_SOURCE and self._parts.statuses.is_rejected(state.uid):
            self._pod_table.update(state, stated)  # it has failed for good: its cluster makes another one
            self._announcer.report(state, now)
            return
        pod = self._parts.allocations.allocated(stated)
        rejected = self.admission.admit(pod)
        if rejected is not None:
            reason, message = event_reasons.rejected(rejected.reason), f"{NOT_UPDATED}: {rejected.message}"
            self._announcer.pod_event(state, reason, message, now)
            if state.stated is not None and self._comes_as_it_was(state):
                self._out.add(UpdateRefused(state.stated))
            return
        self._warn(state, pod, now)
        if self._parts.statuses.is_rejected(state.uid):
            state.succeed(stated, state.source)
            state.lifecycle.remove(None, now.wall)
        else:
            self._pod_table.update(state, pod)
            self._allocate(state, pod, stated)
            self._parts.probes.recall(state, self._parts.cache.get(state.uid))
        self._parts.poison_pods.absolve(state.uid, now.mono)
        self._pod_table.touch((state.uid,))
        self._announcer.report(state, now)

    def _comes_as_it_was(self, state: PodRecord) -> bool:
        """Whether a pod whose edit was refused runs, or will run when the node is uncordoned."""
        return not self._parts.statuses.is_rejected(state.uid) or self._shutdown.is_cause(state)

    def _remove(self, pod: Pod, _: PodUpdate, now: Instant) -> None:
        """HandlePodRemoves. Waits until every source was read once and one full relist has succeeded."""
        state = self._pod_table.get(pod.metadata.uid)
        if state is None:
            return
        state.drop_successor()
        self._removals.add(state.uid, pod.metadata.deletion_grace_period_seconds)
        self.carry_out_removals(now)

    def _delete(self, pod: Pod, update: PodUpdate, now: Instant) -> None:
        """The source wants the pod ended, and keeps it until it has ended. That is no conclusion from what a source
        lacks, so it waits for no other one."""
        state = self._pod_table.get(pod.metadata.uid)
        if state is None:
            self._add(pod, update, now)
            return
        state.drop_successor()
        self._pod_table.update(state, self._parts.allocations.allocated(pod))
        state.state(pod)
        self._kill(state, pod.metadata.deletion_grace_period_seconds, now)

    def _reconcile(self, pod: Pod, _: PodUpdate, now: Instant) -> None:
        """HandlePodReconcile: nothing is wanted otherwise, but a status is another one than was reported; a readiness
        gate may be open."""
        state = self._pod_table.get(pod.metadata.uid)
        if state is None or state.lifecycle.removed:
            return
        self._pod_table.update(state, self._parts.allocations.allocated(pod))
        state.state(pod)
        self._announcer.report(state, now)
        if pod.status.phase in TERMINAL_PHASES and state.lifecycle.phase is WorkType.SYNC:
            self._end_as_stated(state)

    def _end_as_stated(self, state: PodRecord) -> None:
        """Somebody has told the cluster that the pod is at its end, which nobody can take back: it goes down
        (pkg/kubelet/pod_workers.go, UpdatePod)."""
        if state.lifecycle.terminate():
            self._out.cancel_sync(state)
        self._pod_table.touch((state.uid,))

    def on_sources_ready(self, _: SourcesReady, now: Instant) -> None:
        self._removals.sources_ready()
        self._shutdown.sources_ready()
        self._evicted = {}
        self._resizes.wake()
        self.carry_out_removals(now)

    def room_was_made(self) -> None:
        """A pod is gone, or nothing of it runs any more."""
        self._resizes.wake()

    def _warn(self, state: PodRecord, pod: Pod, now: Instant) -> None:
        state.parts.is_unwarned = False
        for warning in self.admission.warnings(pod):
            self._announcer.pod_event(state, event_reasons.UNSUPPORTED_FIELD, warning, now)

    # --- evictions -----------------------------------------------------------------------------------------------

    def on_evictions_restored(self, restored: EvictionsRestored, now: Instant) -> None:
        """Pods that were evicted do not run again when a source states them anew."""
        self._evicted = dict(restored.failures)

    def evict(self, state: PodRecord, why: PodFailure) -> None:
        """The pod fails and goes down at once (pkg/kubelet/eviction/eviction_manager.go, evictPod)."""
        self._parts.kills.end(state, why, EVICTION_GRACE_PERIOD_S, evict=True)

    # --- removals ------------------------------------------------------------------------------------------------

    def carry_out_removals(self, now: Instant) -> None:
        """Terminate the removed pods for which enough is known by now."""
        for uid, grace_s in self._removals.take_due(self._parts.cache.relisted_at).items():
            state = self._pod_table.get(uid)
            if state is not None:
                self._kill(state, grace_s, now)

    def on_kill_pod(self, kill: KillPod, now: Instant) -> None:
        for state in self.going_down(kill.namespace, kill.name):
            if state.uid in self._removals:
                self._removals.add(state.uid, kill.grace_period_s)
            else:
                self._kill(state, kill.grace_period_s, now)

    def on_stop_pods(self, _: StopPods, now: Instant) -> None:
        """Terminate and remove all pods, critical ones last, whatever the sources say later."""
        self._stop_asked_at = now.mono
        for state in self._pod_table:
            state.drop_successor()
        priorities = {state.uid: pod_priority(state.pod) if state.pod else 0 for state in self._pod_table}
        self._stopping.extend(group_by_priority(drain_classes(self._parts.node.view.settings), priorities))
        self.stop_next_group(now)
        self._out.to_node(Relist())

    def on_shutdown_called_off(self, off: NodeShutdownCalledOff, now: Instant) -> None:
        """Pods that have ended with the node, or were not admitted meanwhile, begin anew; but for those of which a
        source has said that they go."""
        newcomers = self._shutdown.newcomers
        if not self._shutdown.call_off(off.cause):
            return
        for uid in newcomers:
            self.admission.begins_after_all(uid, now)
        for state in list(self._pod_table):
            is_wanted = not state.lifecycle.removed and state.uid not in self._removals
            if state.stated is not None and is_wanted and self._shutdown.is_cause(state):
                state.succeed(state.stated, state.source)
                self._kill(state, None, now)

    def stop_next_group(self, now: Instant) -> None:
        """Stop the next group of pods, when nothing is left of the one before."""
        while self._stopping and not any(uid in self._pod_table for uid in self._stopped):
            self._stopped = self._stopping.popleft().uids
            for state in [state for uid in self._stopped if (state := self._pod_table.get(uid)) is not None]:
                self._kill(state, None, now)

    def answer_stop(self) -> None:
        """Say once that all pods are gone, by a relist that began after the question and has found nothing of ours."""
        asked_at, cache = self._stop_asked_at, self._parts.cache
        if asked_at is None or self._pod_table or cache.relisted_at <= asked_at:
            return
        if cache.unseen or cache.orphans(()):
            return
        self._stop_asked_at = math.inf
        self._out.add(PodsStopped())

    def _kill(self, state: PodRecord, grace_s: int | None, now: Instant) -> None:
        if not state.lifecycle.removed:
            self._parts.poison_pods.absolve(state.uid, now.mono)
        if state.lifecycle.remove(grace_s, now.wall):
            self._out.cancel_sync(state)
        self._pod_table.touch((state.uid,))
        self._announcer.report(state, now)

    # --- orphans -------------------------------------------------------------------------------------------------

    def on_housekeeping(self, _: HousekeepingTick, now: Instant) -> None:
        """HandlePodCleanups: what runs with our label and nobody wants is stopped and removed."""
        if self._parts.cache.relisted_at and (self.sources_ready or self.is_stopping):
            for uid in self._parts.cache.orphans(self._pod_table):
                self._adopt_orphan(uid, now)

    def _adopt_orphan(self, uid: str, now: Instant) -> None:
        """Take an orphan down like any pod, by its labels; only a view from now on counts."""
        status = self._parts.cache.get(uid)
        METERS.counter(metrics.ORPHANED_RUNTIME_PODS).inc()
        state = self._parts.tracking.begin(uid, f"{status.namespace}/{status.name}", None, "runtime", now.mono)
        state.lifecycle.remove(None, now.wall)
        about = Subject(namespace=status.namespace, name=status.name, uid=uid)
        words = f"removing {status.namespace}/{status.name} ({uid}): no source wants it"
        self._announcer.log("info", words, about)
