"""The kubelet's sync loop as a sans-I/O core: ``handle(event, now) -> [command]``.

Mirrors syncLoopIteration and its handlers (pkg/kubelet/kubelet.go) and the pod workers' rules
(pkg/kubelet/pod_workers.go). Nothing here reads a clock, a socket or a file: the whole of it can be driven by a test or
a simulator. Losing any event but a `PodUpdate` only delays: every dispatch is decided anew from desired and observed.

Desired pods are handled in `pod_updates`, ConfigMaps and Secrets in `object_updates`, the agent's own processes in
`worker_updates`; observations, answers of workers and ticks here. After every event `dispatcher` decides what goes out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from ipc.api.v1.pod import Pod
from ipc.host.clock import Instant
from ipc.kubecontainer.pod_failure import EVICTED, PodFailure
from ipc.kubecontainer.probe_results import ProbeResults
from ipc.messages import event_reasons
from ipc.messages.base import EventReport, PullEnded, PullProgress
from ipc.messages.cluster import NodeStated, PodValuesStated
from ipc.messages.node_worker import (
    ImagesCollected,
    LogsCollected,
    NodeObserved,
    Observation,
    ObservationFailed,
    RuntimeHealth,
    VolumeDeleted,
)
from ipc.messages.pod_worker import BeginningKept, ProbeResultChanged, ProbingStopped, SyncDone, WorkType
from ipc.messages.sync_error import SyncError
from ipc.messages.wait_reasons import NextStep
from ipc.metrics import rootlet as metrics
from ipc.nodestatus.node import NodeCondition
from ipc.podobjects.config_objects import ConfigObject, ObjectKey
from ipc.podresources.node_resources import NodeResources
from ipc.shm.metric_cells import METERS
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.config.settings import Settings
from supervisor.loop import requeue
from supervisor.loop.claim_holders import ClaimHolders
from supervisor.loop.container_restarts import ContainerRestarts, RequestedRestarts
from supervisor.loop.dispatcher import Dispatcher
from supervisor.loop.garbage import Garbage
from supervisor.loop.node_pressure import NodePressureManager
from supervisor.loop.node_shutdown import NodeShutdown
from supervisor.loop.object_updates import ObjectUpdates
from supervisor.loop.parts import LoopParts
from supervisor.loop.pod_cgroups import PodCgroupPlans
from supervisor.loop.pod_kills import PodKills
from supervisor.loop.pod_updates import PodUpdates
from supervisor.loop.pressure_conditions import PressureConditions
from supervisor.loop.resizes import Resizes
from supervisor.loop.resting_pods import rests
from supervisor.loop.volume_updates import VolumeUpdates
from supervisor.loop.worker_updates import WorkerUpdates
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.container_gc import removal_failures
from supervisor.managers.image_pulls import PullEvent
from supervisor.managers.probe_manager import needs_sync
from supervisor.persistentvolume.controller import PersistentVolumeController
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.next_step import shown
from supervisor.pods.record import PodRecord
from supervisor.pods.sharding import worker_limits
from supervisor.protocol.commands import LoopCommand, RestsOn
from supervisor.protocol.dispatch import DispatchTable
from supervisor.protocol.events import (
    BeginningRequest,
    BindingsRestored,
    ContainerRestartRequested,
    ContainerRestartsRestored,
    DevicesChanged,
    EndsRestored,
    EventsRestored,
    EvictionsRestored,
    FreezeRequest,
    GarbageRequest,
    HostAddressesChanged,
    HousekeepingTick,
    KillPod,
    LoopEvent,
    NodeShutdownBegan,
    NodeShutdownCalledOff,
    Observations,
    ProbeResultsRestored,
    PullRequest,
    ResourcesRestored,
    SettingsChanged,
    SourcesReady,
    StatusesDue,
    StopPods,
    SyncTick,
    WorkerDown,
    WorkerLeaving,
    WorkerUp,
)
from supervisor.protocol.source_updates import ObjectsExpected, ObjectUpdate, PodsIncomplete, PodUpdate
from supervisor.record.recorder import EventRecorder
from supervisor.record.status_manager import pod_event

_RESTS: Final = METERS.counter(metrics.RESTS)


class SyncLoop:
    """Takes one event after another. Its state is in its parts."""

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
        self._pod_table = parts.pod_table
        self._observation_requests = parts.observation_requests
        self._out = parts.out
        self._announcer = parts.announcer
        node_, table, cache, announcer, out = parts.node, parts.pod_table, parts.cache, parts.announcer, parts.out
        self._shutdown = NodeShutdown(node_, table, cache, parts.statuses, parts.kills, announcer, out)
        self._resizes = Resizes(node_, table, cache, parts.allocations, parts.usage, parts.tracking, announcer)
        self.container_restarts = ContainerRestarts(parts.restarts, parts.pod_table, parts.cache, parts.announcer)
        """Restarts of single containers, to be asked for."""
        self._updates = PodUpdates(parts, self._shutdown, self._resizes)
        holders = ClaimHolders(table, cache, parts.tracking)
        self._volumes = VolumeUpdates(node_, table, parts.known, holders, announcer, out)
        self._objects = ObjectUpdates(
            table,
            parts.objects,
            self._volumes,
            parts.known,
            parts.incomplete,
            parts.statuses,
            parts.tracking,
            announcer,
            out,
        )
        self._garbage = Garbage(node_, table, cache, parts.statuses, announcer, out, self._is_all_known)
        self._cgroups = PodCgroupPlans(node_, parts.known, table, cache, out, self._is_all_known)
        self._workers = WorkerUpdates(
            table,
            parts.observation_requests,
            parts.statuses,
            parts.allocations,
            parts.ended,
            parts.probes,
            parts.pulls,
            parts.poison_pods,
            self._garbage,
            self._cgroups,
            announcer,
            out,
        )
        self._dispatcher = Dispatcher(parts, self._updates, self._volumes)
        self._pressure_conditions = PressureConditions(node_, announcer)
        self._node_pressure = NodePressureManager(
            node_,
            self._pressure_conditions,
            table,
            cache,
            parts.statuses,
            parts.kills,
            announcer,
            out,
            self._is_all_known,
            self._garbage.collect_unused_images,
        )
        self.handlers = self._dispatch_table()

    def _dispatch_table(self) -> DispatchTable[[Instant], None]:
        """The handler of every type of `LoopEvent`."""
        parts = self._parts
        table = DispatchTable[[Instant], None]()
        table.on(PodUpdate, self._updates.on_pod_update)
        table.on(ObjectUpdate, self._objects.on_object_update)
        table.on(PodValuesStated, self._objects.on_pod_values)
        table.on(NodeStated, parts.node.on_node_stated)
        table.on(ObjectsExpected, self._objects.on_objects_expected)
        table.on(PodsIncomplete, self._dispatcher.on_pods_incomplete)
        table.on(SourcesReady, self._on_sources_ready)
        table.on(KillPod, self._updates.on_kill_pod)
        table.on(StopPods, self._updates.on_stop_pods)
        table.on(NodeShutdownBegan, self._shutdown.on_begun)
        table.on(NodeShutdownCalledOff, self._updates.on_shutdown_called_off)
        table.on(HousekeepingTick, self._updates.on_housekeeping)
        table.on(WorkerUp, self._workers.on_worker_up)
        table.on(WorkerLeaving, self._workers.on_worker_leaving)
        table.on(WorkerDown, self._workers.on_worker_down)
        table.on(Observations, self._on_views)
        table.on(ObservationFailed, self._on_observation_failed)
        table.on(NodeObserved, self._node_pressure.on_node_observed)
        table.on(RuntimeHealth, parts.node.on_runtime_health)
        table.on(SyncDone, self._on_sync_done)
        table.on(EventReport, self._announcer.event)
        table.on(PullRequest, self._pull)
        table.on(BeginningRequest, self._on_beginning)
        table.on(PullProgress, self._pull)
        table.on(PullEnded, self._pull)
        table.on(ImagesCollected, self._garbage.on_images_collected)
        table.on(LogsCollected, self._garbage.on_logs_collected)
        table.on(VolumeDeleted, self._objects.on_volume_deleted)
        table.on(GarbageRequest, self._garbage.on_request)
        table.on(ProbeResultChanged, self._on_probe_result)
        table.on(ProbingStopped, self._on_probing_stopped)
        table.on(StatusesDue, self._on_statuses_due)
        table.on(SyncTick, self._on_sync_tick)
        table.on(EventsRestored, self._on_events_restored)
        table.on(ProbeResultsRestored, self._on_probe_results_restored)
        table.on(EvictionsRestored, self._updates.on_evictions_restored)
        table.on(ResourcesRestored, self._on_resources_restored)
        table.on(ContainerRestartRequested, self.container_restarts.on_request)
        table.on(FreezeRequest, self._parts.pauses.on_request)
        table.on(ContainerRestartsRestored, self.container_restarts.on_restored)
        table.on(EndsRestored, self._on_ends_restored)
        table.on(BindingsRestored, self._objects.on_bindings_restored)
        table.on(HostAddressesChanged, self._on_host_addresses_changed)
        table.on(SettingsChanged, self._on_settings_changed)
        table.on(DevicesChanged, self._on_devices_changed)
        return table

    def handle(self, event: LoopEvent, now: Instant) -> list[LoopCommand]:
        """Take one event, give back everything that has to happen because of it."""
        self.handlers(self._parts.texts.made_fit(event), now)
        if not isinstance(event, EventReport):  # which is passed on, and changes no pod
            self._settle(now)
        return self._out.take()

    def takes_early(self, stated: PodValuesStated) -> bool:
        """Take values of a pod that is still to come: no event, as nothing follows from them. Each pod of a burst has
        some. False, and nothing is done, when the pod is here."""
        return self._objects.take_early(stated)

    def _settle(self, now: Instant) -> None:
        """Do what follows from what has changed."""
        self._retry_resizes(now)
        if not self._announcer.is_batch_under_way():  # a new worker would take the CPU, and the pods do not wait for it
            self._workers.scale_workers()
        self._dispatcher.dispatch_touched(now)
        self._parts.kills.settle(now)
        self._node_pressure.settle(now)
        self._shutdown.advance(now)
        self._updates.stop_next_group(now)
        self._dispatcher.dispatch_touched(now)
        self._announcer.settle(now)
        self._updates.answer_stop()
        if request := self._observation_requests.take_request():
            self._out.to_node(request)

    def _retry_resizes(self, now: Instant) -> None:
        if not self._resizes.is_due(now):
            return
        if self._updates.sources_ready:
            self._resizes.retry(now, self._updates.admission.staying)
        else:
            self._resizes.put_off(now)

    @property
    def workers(self) -> int:
        """Number of pod workers that are wanted; a change of it is a command (`WorkersWanted`)."""
        return self._pod_table.workers

    def pods_per_slot(self) -> Mapping[int, int]:
        """Number of pods of each slot, for `get workers`."""
        return self._pod_table.pods_per_slot

    @property
    def node_conditions(self) -> tuple[NodeCondition, ...]:
        """Conditions of pressure on the node."""
        return self._pressure_conditions.dated

    def state(self, uid: str) -> PodRecord | None:
        """The pod worker state of a pod; None of one that is not known."""
        return self._pod_table.get(uid)

    @property
    def kills(self) -> PodKills:
        """Ends pods for a reason."""
        return self._parts.kills

    @property
    def event_history(self) -> EventRecorder:
        """Owner of the events, for the event writer to read."""
        return self._parts.statuses.event_history

    @property
    def allocations(self) -> AllocationManager:
        """Owner of pods' resources, for their checkpoint to read."""
        return self._parts.allocations

    @property
    def requested_restarts(self) -> RequestedRestarts:
        """Owner of the restarts that are still to be carried out, for their checkpoint to read."""
        return self._parts.restarts

    @property
    def ended_containers(self) -> EndedContainers:
        """Owner of the ends that outlive their containers, for their file to read."""
        return self._parts.ended

    @property
    def persistent_volumes(self) -> PersistentVolumeController:
        """Owner of the bindings of claims, for their checkpoint to read."""
        return self._volumes.controller

    def probe_results_by_id(self) -> dict[str, ProbeResults]:
        """Probe results of all containers, by container id, those that were not observed yet among them."""
        return self._parts.probes.all_results()

    def is_going_down(self, namespace: str, name: str) -> bool:
        """Whether a pod of that name is on its way out: it may be there long after the last source has forgotten it."""
        return bool(self._updates.going_down(namespace, name))

    def next_step(self, namespace: str, name: str, now: Instant) -> NextStep | None:
        """Next step of the pod of that name; None for no such pod."""
        found = self._pod_table.named(namespace, name)
        return shown(self._dispatcher.next_step(found[-1], now), now) if found else None

    def config_object(self, key: ObjectKey) -> ConfigObject | None:
        """An object beside pods as its source states it; None for none."""
        return self._parts.objects.find(key)

    def _on_sources_ready(self, ready: SourcesReady, now: Instant) -> None:
        self._updates.on_sources_ready(ready, now)
        self._parts.known.forget_unwanted()
        self._objects.on_sources_ready(now)

    # --- observations --------------------------------------------------------------------------------------------

    def _on_views(self, views: Observations, now: Instant) -> None:
        """PLEG: a changed pod is synced (HandlePodSyncs); an unknown one is an orphan, if the sources are known."""
        for observation in (*views.observations, *self._absent(views)):
            self._take_view(observation, now)
        if views.relisted_at:
            self._pod_table.touch(self._observation_requests.relisted(views.relisted_at, views.unseen))
            if not views.unseen:
                self._parts.probes.relisted(self._observation_requests.cache.statuses().values())
            self._updates.carry_out_removals(now)

    def _absent(self, views: Observations) -> list[Observation]:
        """The node worker speaks of a pod without a row, and of an unknown one, only while something of it exists."""
        if not views.relisted_at:
            return []
        cache = self._observation_requests.cache
        untracked = {*self._pod_table.without_row(), *cache.unknown(self._pod_table)} - set(views.unseen)
        return self._observation_requests.absent(views.relisted_at, views.observations, sorted(untracked))

    def _take_view(self, observation: Observation, now: Instant) -> None:
        state = self._pod_table.get(observation.uid)
        changed = self._observation_requests.take(observation)
        if state is None:
            return
        self._pod_table.touch((state.uid,))
        if changed is not None:
            is_newer = changed.observed_at > self._observation_requests.acted_at(state.uid)
            state.lifecycle.observed(changed, is_newer=is_newer)
            if state.pod is not None:
                fit = self._parts.texts.observed(state, changed)
                if state.lifecycle.removed:
                    self._parts.ended.ended(fit)
                else:
                    self._parts.ended.observed(state.pod, fit, now.wall)
            self._observation_requests.accept_older(state.uid)  # a noted end has the date of the view before it
            self._parts.probes.recall(state, changed)
            self._parts.allocations.observed(state.uid, changed)
            self._parts.restarts.observed(state.uid, self._observation_requests.cache.get(state.uid))
            self._parts.devices.observed(state.pod, changed, self._pod_of)
            self._announcer.report(state, now, observed_at=changed.observed_at)
        elif self._announcer.awaits_view(state):
            self._announcer.report(state, now)

    def _pod_of(self, uid: str) -> Pod | None:
        state = self._pod_table.get(uid)
        return state.pod if state is not None else None

    def _on_observation_failed(self, failed: ObservationFailed, now: Instant) -> None:
        """A pod that cannot be observed gets no work until it can (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        state = self._pod_table.get(failed.uid)
        if state is not None and state.pod is not None:
            message = f"error determining status: {failed.message}"
            self._announcer.event(pod_event(state, event_reasons.FAILED_SYNC, message), now)

    # --- answers of workers --------------------------------------------------------------------------------------

    def _on_sync_done(self, done: SyncDone, now: Instant) -> None:
        state = self._pod_table.get(done.uid)
        if state is None or not state.lifecycle.answered_by(done):
            return
        statuses = self._parts.statuses
        if statuses.is_news(state.uid, done):
            self._announcer.sync_ended(state, done)
        flight = state.lifecycle.done(done)
        with_effect = flight.kind is not WorkType.SYNC or _may_have_touched(done)
        self._observation_requests.acted(state.uid, now.mono, with_effect=with_effect)
        if with_effect:
            self._pod_table.note_activity(state)
        state.parts.pull_failures = done.pull_failures
        statuses.sync_ended(state, done)
        if not done.cancelled and done.error is not SyncError.STALE_VIEW:
            self._parts.poison_pods.survived(state.slot, state.uid)
        self._pod_table.touch((state.uid, *self._parts.poison_pods.suspects()))
        for report in removal_failures(self._parts.node.view.settings.node_name, state.name, done):
            self._announcer.event(report, now)
        self._parts.ended.removed(state.uid, done.removed)
        if done.changed:
            self._observation_requests.touched(state.uid, done.touched, removed=done.removed, unsure=done.unsure)
            self._observation_requests.looked(state.uid, done.looks)
        self._resizes.sync_ended(state, done, now)
        self._parts.pauses.sync_ended(state, done, now)
        if done.evicted and state.lifecycle.phase is WorkType.SYNC:
            self._updates.evict(state, PodFailure(reason=EVICTED, message=done.evicted))
            self._announcer.pod_event(state, event_reasons.EVICTED, done.evicted, now)
        due = requeue.due_in(done, now, self._parts.node.view.settings, self._rng, len(self._pod_table))
        if due > 0.0:
            self._parts.queue.enqueue(state.uid, now.mono + due)
        else:
            state.lifecycle.resync()
        if flight.kind is WorkType.SYNC and _is_shown_by_view(done):
            self._announcer.report_with_view(state, now)
        else:
            self._announcer.report(state, now)

    def _pull(self, event: PullEvent, now: Instant) -> None:
        self._out.send_all(self._parts.pulls.handle(event, now.mono))

    def _on_beginning(self, asked: BeginningRequest, now: Instant) -> None:
        """Remember the run, and let it begin when that is on the disk."""
        run, uid, ended = asked.request.container, asked.request.uid, self._parts.ended
        if uid in self._pod_table:
            ended.begins(uid, run, now.mono)
        self._out.send(asked.slot, BeginningKept(uid=uid, id=run.id), RestsOn(ends=ended.version))

    def _on_probe_result(self, changed: ProbeResultChanged, now: Instant) -> None:
        """handleProbeSync, and the status manager's SetContainerReadiness and SetContainerStartup."""
        state = self._pod_table.get(changed.uid)
        if state is None or not self._parts.probes.take(state, changed):
            return
        if needs_sync(changed):
            state.lifecycle.sync_soon()
        self._pod_table.touch((state.uid,))
        self._announcer.report(state, now)

    def _on_probing_stopped(self, stopped: ProbingStopped, now: Instant) -> None:
        self._parts.probes.stopped(stopped.uid)
        self._pod_table.touch((stopped.uid,))

    # --- state of an earlier agent, and the settings -------------------------------------------------------------

    def _on_events_restored(self, restored: EventsRestored, now: Instant) -> None:
        self._out.to_api(self._parts.statuses.restore_events(restored.events, now))

    def _on_ends_restored(self, restored: EndsRestored, now: Instant) -> None:
        """Before anything is observed."""
        self._parts.ended.restored(restored.pods, restored.alive_at)

    def _on_probe_results_restored(self, restored: ProbeResultsRestored, now: Instant) -> None:
        self._parts.probes.restore(restored.probe_results)

    def _on_resources_restored(self, restored: ResourcesRestored, now: Instant) -> None:
        self._parts.allocations.restore(restored.pods)

    def _on_settings_changed(self, change: SettingsChanged, now: Instant) -> None:
        self._parts.node.settings_changed(change.settings)
        self._pod_table.limit_workers(worker_limits(change.settings))
        self._parts.statuses.settings_changed(change.settings)
        for state in self._pod_table:
            state.lifecycle.unsettle()

    def _on_host_addresses_changed(self, change: HostAddressesChanged, now: Instant) -> None:
        self._parts.statuses.host_addresses_changed(change.ips)
        for state in self._pod_table:
            state.lifecycle.unsettle()
            self._announcer.report(state, now)

    def _on_devices_changed(self, change: DevicesChanged, now: Instant) -> None:
        self._pod_table.touch(self._parts.devices.recount(change.devices))

    def _on_statuses_due(self, due: StatusesDue, now: Instant) -> None:
        self._updates.statuses_due(now)

    # --- time ----------------------------------------------------------------------------------------------------

    def _on_sync_tick(self, tick: SyncTick, now: Instant) -> None:
        self._pull(tick, now)
        self._updates.statuses_due(now)
        self._parts.poison_pods.tick(now.mono)
        self._workers.move_pods(now)
        self._pod_table.touch(self._parts.poison_pods.suspects())
        self._dispatcher.retry_waiting_for_sources()
        self._objects.tick(now)
        self._out.to_api(self._parts.statuses.expire_events(now))
        self._sync_due(now)
        self._tell_waits(now)
        for state in self._announcer.due_again(now):
            self._announcer.report(state, now)
            self._pod_table.touch((state.uid,))
        for state in self._pod_table.with_deadline():
            if self._parts.statuses.is_past_deadline(state, now):
                self._dispatcher.terminate_if_terminal(state, now)
                self._pod_table.touch((state.uid,))
        self._garbage.tick(now)
        self._cgroups.tick(now)
        self._pressure_conditions.tick(now)

    def _tell_waits(self, now: Instant) -> None:
        for state in self._parts.waits.tick():
            self._announcer.log("debug", f"{state.name}: waits for {state.reported_wait or 'nothing any more'}")
            self._announcer.report(state, now)

    def _sync_due(self, now: Instant) -> None:
        parts = self._parts
        for uid in parts.queue.pop_due(now.mono):
            state = self._pod_table.get(uid)
            if state is None or state.lifecycle.finished:
                continue
            if rests(state.lifecycle, parts.cache.get(uid), parts.node.view.resources):
                state.lifecycle.rest()
                _RESTS.inc()
                frequency_s, pods = parts.node.view.settings.sync_frequency_s, len(self._pod_table)
                parts.queue.enqueue(uid, now.mono + requeue.periodic(now.mono, frequency_s, pods, self._rng))
            else:
                state.lifecycle.wake()
                parts.tracking.resync(state)

    def _is_all_known(self) -> bool:
        """Whether it is known what is wanted and what runs, and the agent does not stop."""
        is_listed = self._observation_requests.cache.relisted_at > 0.0
        return self._updates.sources_ready and is_listed and not self._updates.is_stopping


def _is_shown_by_view(done: SyncDone) -> bool:
    """Whether the observation that is due after a sync shows all there is to report of it."""
    return done.changed and not (done.cancelled or done.error or done.failed or done.evicted or done.actuated)


def _may_have_touched(done: SyncDone) -> bool:
    """Whether what was seen before it may be no longer so."""
    return done.changed or done.cancelled or bool(done.error or done.failed)
