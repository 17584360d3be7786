"""The kubelet's sync loop as a sans-I/O core: ``handle(event, now) -> [command]``.

Mirrors syncLoopIteration and its handlers (pkg/kubelet/kubelet.go) and the pod workers' rules
(pkg/kubelet/pod_workers.go). Nothing here reads a clock, a socket or a file: the whole of it can be driven by a test or
a simulator. Losing any event but a `PodUpdate` only delays: every dispatch is decided anew from desired and observed.

What is wanted is `pod_updates`, what the agent's own processes do is `worker_changes`; here is what was observed and
answered, and the time. After every event `dispatcher` decides what goes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from ipc.host.clock import Instant
from ipc.kubecontainer.probe_results import ProbeResults
from ipc.messages.base import EventReport, PullEnded, PullProgress
from ipc.messages.node_worker import Observation, ObservationFailed, Observe
from ipc.messages.pod_worker import ProbeResultChanged, ProbingStopped, SyncDone, WorkType
from ipc.podresources.node_resources import NodeResources
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.config.settings import Settings
from supervisor.managers.container_gc import (
    ContainerGarbage,
    collect_logs,
    collection_failures,
    dead_of_each,
    removal_failures,
)
from supervisor.managers.image_pulls import PullEvent
from supervisor.managers.probe_manager import needs_sync, take_probe_result
from supervisor.podworkers.pod_lifecycle import EVICTED
from supervisor.podworkers.sharding import worker_limits
from supervisor.protocol.loop_protocol import (
    EventsRestored,
    EvictionsRestored,
    HostAddressesChanged,
    HousekeepingTick,
    KillPod,
    LoopCommand,
    LoopEvent,
    Observations,
    ProbeResultsRestored,
    PullRequest,
    SettingsChanged,
    SourcesReady,
    StopPods,
    SyncTick,
    WorkerDown,
    WorkerLeaving,
    WorkerUp,
)
from supervisor.protocol.manifests import ObjectsExpected, ObjectUpdate, PodUpdate
from supervisor.record.recorder import EventRecorder
from supervisor.record.status_manager import pod_event
from supervisor.syncloop import requeue
from supervisor.syncloop.announcer import FAILED_SYNC
from supervisor.syncloop.dispatcher import Dispatcher
from supervisor.syncloop.object_updates import ObjectUpdates
from supervisor.syncloop.parts import LoopParts
from supervisor.syncloop.pod_updates import PodUpdates
from supervisor.syncloop.worker_updates import WorkerUpdates


class SyncLoop:
    """Takes events in turn. What it knows is in its parts."""

    def __init__(
        self,
        settings: Settings,
        pod_rows: int,
        host_ips: tuple[str, ...],
        rng: random.Random,
        node: NodeResources = UNKNOWN_NODE,
    ) -> None:
        self._rng = rng
        self._parts = parts = LoopParts(settings, pod_rows, host_ips, node)
        self._pod_table, self._observation_requests, self._cache, self._out = (
            parts.pod_table,
            parts.observation_requests,
            parts.cache,
            parts.out,
        )
        self._announcer = parts.announcer
        self._updates = PodUpdates(parts)
        self._objects = ObjectUpdates(parts)
        self._workers = WorkerUpdates(parts)
        self._dispatcher = Dispatcher(parts, self._updates)
        self._garbage = ContainerGarbage()
        self._handlers: dict[type, Callable[..., None]] = {
            PodUpdate: self._updates.on_pod_update,
            ObjectUpdate: self._objects.on_object_update,
            ObjectsExpected: self._objects.on_objects_expected,
            SourcesReady: self._on_sources_ready,
            KillPod: self._updates.on_kill_pod,
            StopPods: self._updates.on_stop_pods,
            HousekeepingTick: self._updates.on_housekeeping,
            WorkerUp: self._workers.on_worker_up,
            WorkerLeaving: self._workers.on_worker_leaving,
            WorkerDown: self._workers.on_worker_down,
            Observations: self._on_views,
            ObservationFailed: self._on_observation_failed,
            SyncDone: self._on_sync_done,
            EventReport: self._announcer.event,
            PullRequest: self._pull,
            PullProgress: self._pull,
            PullEnded: self._pull,
            ProbeResultChanged: self._on_probe_result,
            ProbingStopped: self._on_probing_stopped,
            SyncTick: self._on_sync_tick,
            EventsRestored: self._on_events_restored,
            ProbeResultsRestored: self._on_probe_results_restored,
            EvictionsRestored: self._on_evictions_restored,
            SettingsChanged: self._on_settings_changed,
            HostAddressesChanged: self._on_host_addresses_changed,
        }

    def handle(self, event: LoopEvent, now: Instant) -> list[LoopCommand]:
        """Take one event, give back everything that has to happen because of it."""
        self._handlers[type(event)](self._parts.texts.made_fit(event), now)
        self._workers.scale_workers()
        self._dispatcher.dispatch_touched(now)
        self._updates.answer_stop()
        if questions := self._observation_requests.questions():
            self._out.to_node(Observe(uids=questions))
        return self._out.take()

    @property
    def workers(self) -> int:
        """How many pod workers there are to be; who changes that says so (`WorkersWanted`)."""
        return self._pod_table.workers

    def pods_per_slot(self) -> Mapping[int, int]:
        """For `get workers`."""
        return self._pod_table.pods_per_slot

    @property
    def event_history(self) -> EventRecorder:
        """For whoever keeps it on disk."""
        return self._parts.reporter.event_history

    def probe_results_by_id(self) -> dict[str, ProbeResults]:
        """What the probes of all containers say, by container id, also of those that nobody could look at yet."""
        found = {id: said for lifecycle in self._pod_table for id, said in lifecycle.probe_results.items()}
        return {**self._parts.probing.unclaimed, **found}

    def is_going_down(self, namespace: str, name: str) -> bool:
        """Whether a pod of that name is on its way out: it may be there long after the last source has forgotten it."""
        return bool(self._updates.going_down(namespace, name))

    def _on_sources_ready(self, ready: SourcesReady, now: Instant) -> None:
        self._updates.on_sources_ready(ready, now)
        self._objects.on_sources_ready(now)
        self._parts.evicted.clear()

    # --- what was observed ---------------------------------------------------------------------------------------

    def _on_views(self, views: Observations, now: Instant) -> None:
        """PLEG: a changed pod is synced (HandlePodSyncs); an unknown one is an orphan, if the sources are known."""
        for observation in (*views.observations, *self._absent(views)):
            self._take_view(observation, now)
        if views.relisted_at:
            acted_at = {lifecycle.uid: lifecycle.acted_at for lifecycle in self._pod_table}
            self._pod_table.touch(self._observation_requests.relisted(views.relisted_at, views.unseen, acted_at.get))
            if not views.unseen:
                self._parts.probing.relisted(self._cache.statuses().values())
            self._updates.carry_out_removals(now)

    def _absent(self, views: Observations) -> list[Observation]:
        """The node worker speaks of a pod without a row, and of an unknown one, only while something of it exists."""
        if not views.relisted_at:
            return []
        untracked = {*self._pod_table.without_row(), *self._cache.unknown(self._pod_table)} - set(views.unseen)
        return self._observation_requests.absent(views.relisted_at, views.observations, sorted(untracked))

    def _take_view(self, observation: Observation, now: Instant) -> None:
        lifecycle = self._pod_table.get(observation.uid)
        changed = self._observation_requests.take(observation, wanted=lifecycle is not None)
        if lifecycle is None:
            return
        self._pod_table.touch((lifecycle.uid,))
        if changed is not None:
            lifecycle.observed(running=changed.is_running())
            self._parts.probing.recall(lifecycle, changed)
            self._announcer.report(lifecycle, now, observed_at=changed.observed_at)

    def _on_observation_failed(self, failed: ObservationFailed, now: Instant) -> None:
        """Its status cannot be told: no work until it can (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        lifecycle = self._pod_table.get(failed.uid)
        if lifecycle is not None and lifecycle.pod is not None:
            message = f"error determining status: {failed.message}"
            self._announcer.event(pod_event(lifecycle.pod, "Warning", FAILED_SYNC, message), now)

    # --- what the workers did ------------------------------------------------------------------------------------

    def _on_sync_done(self, done: SyncDone, now: Instant) -> None:
        lifecycle = self._pod_table.get(done.uid)
        if lifecycle is None or not lifecycle.answered_by(done):
            return
        if lifecycle.is_news(done):
            self._announcer.sync_ended(lifecycle, done)
        lifecycle.done(done, now.mono)
        if not done.cancelled and done.error != requeue.STALE_VIEW:
            self._parts.poison_pods.survived(lifecycle.slot, lifecycle.uid)
        self._pod_table.touch((lifecycle.uid, *self._parts.poison_pods.poison_pods()))
        self._parts.reporter.sync_results(lifecycle, done)
        for report in removal_failures(self._parts.settings.node_name, lifecycle.name, done):
            self._announcer.event(report, now)
        if done.changed:
            self._observation_requests.ask(lifecycle.uid)
        if done.evicted and lifecycle.phase is WorkType.SYNC:
            lifecycle.evict(done.evicted)
            self._announcer.pod_event(lifecycle, "Warning", EVICTED, done.evicted, now)
        due = requeue.due_in(done, now, self._parts.settings, self._rng, len(self._pod_table))
        if due > 0.0:
            self._parts.queue.enqueue(lifecycle.uid, now.mono + due)
        else:
            lifecycle.pending = True
        self._announcer.report(lifecycle, now)

    def _pull(self, event: PullEvent, now: Instant) -> None:
        self._out.send_all(self._parts.pulls.handle(event, now.mono))

    def _on_probe_result(self, verdict: ProbeResultChanged, now: Instant) -> None:
        """handleProbeSync, and the status manager's SetContainerReadiness and SetContainerStartup."""
        lifecycle = self._pod_table.get(verdict.uid)
        if lifecycle is None or not take_probe_result(lifecycle, verdict):
            return
        if needs_sync(verdict):
            lifecycle.pending = lifecycle.pending or lifecycle.phase is WorkType.SYNC
        self._pod_table.touch((lifecycle.uid,))
        self._announcer.report(lifecycle, now)

    def _on_probing_stopped(self, stopped: ProbingStopped, now: Instant) -> None:
        self._parts.probing.stopped(stopped.uid)
        self._pod_table.touch((stopped.uid,))

    # --- what an earlier life has left, and the settings ---------------------------------------------------------

    def _on_events_restored(self, restored: EventsRestored, now: Instant) -> None:
        self._out.to_api(self._parts.reporter.restore_events(restored.events, now))

    def _on_probe_results_restored(self, restored: ProbeResultsRestored, now: Instant) -> None:
        self._parts.probing.restore(restored.probe_results)

    def _on_evictions_restored(self, restored: EvictionsRestored, now: Instant) -> None:
        self._parts.evicted = dict(restored.messages)

    def _on_settings_changed(self, change: SettingsChanged, now: Instant) -> None:
        self._pod_table.limit_workers(worker_limits(change.settings))
        self._parts.settings = change.settings
        self._parts.reporter.settings_changed(change.settings)

    def _on_host_addresses_changed(self, change: HostAddressesChanged, now: Instant) -> None:
        self._parts.reporter.host_ips = change.ips
        for lifecycle in self._pod_table:
            self._announcer.report(lifecycle, now)

    # --- time ----------------------------------------------------------------------------------------------------

    def _on_sync_tick(self, tick: SyncTick, now: Instant) -> None:
        self._pull(tick, now)
        self._parts.poison_pods.tick(now.mono)
        self._workers.move_pods(now)
        self._pod_table.touch(self._parts.poison_pods.poison_pods())
        self._dispatcher.look_again_at_sources()
        self._out.to_api(self._parts.reporter.expire_events(now))
        for uid in self._parts.queue.pop_due(now.mono):
            lifecycle = self._pod_table.get(uid)
            if lifecycle is not None and not lifecycle.finished:
                lifecycle.resync()
                self._pod_table.touch((uid,))
        for uid in self._announcer.untold(now):
            lifecycle = self._pod_table.get(uid)
            if lifecycle is not None:
                self._announcer.report(lifecycle, now)
                self._pod_table.touch((uid,))
        for lifecycle in self._pod_table:
            if lifecycle.is_past_deadline(now):
                self._dispatcher.terminate_if_terminal(lifecycle, now)
                self._pod_table.touch((lifecycle.uid,))
        self._collect_garbage(now)

    def _collect_garbage(self, now: Instant) -> None:
        """Only while it is known what is wanted and what runs something may be deleted."""
        is_all_known = self._updates.sources_ready and self._cache.relisted_at > 0.0
        if not is_all_known or self._updates.is_stopping or not self._garbage.take_due(now.mono):
            return
        views = self._cache.statuses()
        policy = self._parts.settings.container_garbage_collection.policy
        dead, faults = dead_of_each(views, self._pod_table.wanted(), policy, now.wall)
        for report in collection_failures(self._parts.settings.node_name, faults):
            self._announcer.event(report, now)
        for lifecycle in self._pod_table:
            if lifecycle.uid in dead:
                lifecycle.collect(dead[lifecycle.uid])
                self._pod_table.touch((lifecycle.uid,))
        self._out.to_node(collect_logs({*self._pod_table.uids(), *self._cache.unseen}, views, now.wall))
