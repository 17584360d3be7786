"""The kubelet's sync loop as a sans-I/O core: ``handle(event, now) -> [command]``.

Mirrors syncLoopIteration and its handlers (pkg/kubelet/kubelet.go) and the pod workers' rules
(pkg/kubelet/pod_workers.go). Nothing here reads a clock, a socket or a file: the whole of it can be driven by a test or
a simulator. Losing any event but a `PodUpdate` only delays: every dispatch is decided anew from desired and observed.

The table names the handler of each event: desired pods go to `pod_updates`, ConfigMaps and Secrets to `object_updates`,
the agent's own processes to `worker_updates`, observations to `observed`, answers of workers to `answered`, time to
`ticks`. A handler writes its commands to the command buffer. After every event `dispatcher` decides what goes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ipc.host.clock import Instant
from ipc.k8s.nodestatus.node import NodeCondition
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKey
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages import base, cluster, node_worker, pod_worker
from ipc.link.messages.wait_reasons import NextStep
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.config.settings import Settings
from supervisor.loop.assembly import ActualHandlers, DesiredHandlers, Owners, Reports
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.probe_manager import ProbeManager
from supervisor.persistentvolume.controller import PersistentVolumeController
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.container_restarts import RequestedRestarts
from supervisor.podcontrol.node_view import ThisNode
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.next_step import shown
from supervisor.pods.record import PodRecord
from supervisor.processes.worker_pool import fed_slots
from supervisor.protocol import events, source_updates
from supervisor.protocol.commands import LoopCommand
from supervisor.protocol.dispatch import DispatchTable
from supervisor.record.recorder import EventRecorder


class DurableState(NamedTuple):
    """Owners of the state that outlives the agent, for its checkpoints to read."""

    events: EventRecorder
    allocations: AllocationManager
    requested_restarts: RequestedRestarts
    """Restarts of single containers that are still to be carried out."""
    ended_containers: EndedContainers
    """Ends that outlive their containers."""
    volumes: PersistentVolumeController
    """Bindings of claims."""
    probes: ProbeManager
    """Results of all containers, those that were not observed yet among them."""


class SyncLoop:
    """Takes one event after another. Its state is in its handlers and the owners that they share."""

    def __init__(
        self,
        settings: Settings,
        pod_rows: int,
        host_ips: tuple[str, ...],
        rng: random.Random,
        node: NodeResources = UNKNOWN_NODE,
    ) -> None:
        this_node = ThisNode(settings, node)
        self._out = out = CommandBuffer(fed_slots(is_member=settings.cluster.is_configured))
        owners = Owners(settings, pod_rows, this_node, out)
        reports = Reports(owners, host_ips, this_node, out)
        wanted = DesiredHandlers(owners, reports, this_node, out)
        actual = ActualHandlers(owners, reports, wanted, this_node, out, rng)
        self.handlers = _dispatch_table(this_node, owners, reports, wanted, actual)
        self._settling = _settling(reports, wanted, actual)
        self.durable = DurableState(
            reports.statuses.event_history,
            owners.allocations,
            owners.restarts,
            owners.ended,
            wanted.volumes.controller,
            owners.probes,
        )
        self.pod_table = owners.pod_table
        self.statuses = reports.statuses
        self.kills = reports.kills
        """Ends pods for a reason."""
        self.pauses = reports.pauses
        self.container_restarts = wanted.container_restarts
        """Restarts of single containers, to be asked for."""
        self._texts = reports.texts
        self._store = owners.objects
        self._objects = wanted.objects
        self._removals = wanted.removals
        self._steps = actual.steps
        self._conditions = actual.conditions

    def handle(self, event: events.LoopEvent, now: Instant) -> list[LoopCommand]:
        """Take one event, give back everything that has to happen because of it."""
        self.handlers(self._texts.made_fit(event), now)
        if not isinstance(event, base.EventReport):  # which is passed on, and changes no pod
            self._settling(now)
        return self._out.take()

    def takes_early(self, stated: cluster.PodValuesStated) -> bool:
        """Take values of a pod that is still to come: no event, as nothing follows from them. Each pod of a burst has
        some. False, and nothing is done, when the pod is here."""
        return self._objects.take_early(stated)

    @property
    def workers(self) -> int:
        """Number of pod workers that are wanted; a change of it is a command (`WorkersWanted`)."""
        return self.pod_table.workers

    def pods_per_slot(self) -> Mapping[int, int]:
        """Number of pods of each slot, for `get workers`."""
        return self.pod_table.pods_per_slot

    @property
    def node_conditions(self) -> tuple[NodeCondition, ...]:
        """Conditions of pressure on the node."""
        return self._conditions.dated

    def state(self, uid: str) -> PodRecord | None:
        """The pod worker state of a pod; None of one that is not known."""
        return self.pod_table.get(uid)

    def is_going_down(self, namespace: str, name: str) -> bool:
        """Whether a pod of that name is on its way out: it may be there long after the last source has forgotten it."""
        return bool(self._removals.going_down(namespace, name))

    def next_step(self, namespace: str, name: str, now: Instant) -> NextStep | None:
        """Next step of the pod of that name; None for no such pod."""
        found = self.pod_table.named(namespace, name)
        return shown(self._steps.next_step(found[-1], now), now) if found else None

    def config_object(self, key: ObjectKey) -> ConfigObject | None:
        """An object beside pods as its source states it; None for none."""
        return self._store.find(key)


def _dispatch_table(
    node: ThisNode, owners: Owners, reports: Reports, wanted: DesiredHandlers, actual: ActualHandlers
) -> DispatchTable[[Instant], None]:
    """The handler of every type of `LoopEvent`."""
    sources_ready = _in_turn(
        wanted.removals.sources_ready,
        wanted.shutdown.sources_ready,
        lambda _: wanted.resizes.wake(),
        lambda _: owners.known.forget_unwanted(),
        wanted.objects.sources_ready,
    )
    table = DispatchTable[[Instant], None]()
    table.on(source_updates.PodUpdate, wanted.updates.on_pod_update)
    table.on(source_updates.ObjectUpdate, wanted.objects.on_object_update)
    table.on(source_updates.ObjectsExpected, wanted.objects.on_objects_expected)
    table.on(source_updates.PodsIncomplete, wanted.objects.on_pods_incomplete)
    table.on(cluster.PodValuesStated, wanted.objects.on_pod_values)
    table.on(cluster.NodeStated, node.on_node_stated)
    table.on(events.SourcesReady, lambda _, now: sources_ready(now))
    table.on(events.KillPod, wanted.removals.on_kill_pod)
    table.on(events.StopPods, wanted.stop.on_stop_pods)
    table.on(events.NodeShutdownBegan, wanted.shutdown.on_begun)
    table.on(events.NodeShutdownCalledOff, wanted.updates.on_shutdown_called_off)
    table.on(events.HousekeepingTick, wanted.orphans.on_housekeeping)
    table.on(events.WorkerUp, actual.workers.on_worker_up)
    table.on(events.WorkerLeaving, actual.workers.on_worker_leaving)
    table.on(events.WorkerDown, actual.workers.on_worker_down)
    table.on(events.Observations, actual.observed.on_observations)
    table.on(node_worker.ObservationFailed, actual.observed.on_observation_failed)
    table.on(node_worker.NodeObserved, actual.pressure.on_node_observed)
    table.on(node_worker.RuntimeHealth, node.on_runtime_health)
    table.on(pod_worker.SyncDone, actual.answered.on_sync_done)
    table.on(events.BeginningRequest, actual.answered.on_beginning)
    table.on(events.PullRequest, actual.answered.on_pull)
    table.on(base.PullProgress, actual.answered.on_pull)
    table.on(base.PullEnded, actual.answered.on_pull)
    table.on(base.EventReport, reports.reporter.event)
    table.on(node_worker.ImagesCollected, actual.garbage.on_images_collected)
    table.on(node_worker.LogsCollected, actual.garbage.on_logs_collected)
    table.on(events.GarbageRequest, actual.garbage.on_request)
    table.on(node_worker.VolumeDeleted, wanted.objects.on_volume_deleted)
    table.on(pod_worker.ProbeResultChanged, actual.probing.on_probe_result)
    table.on(pod_worker.ProbingStopped, actual.probing.on_probing_stopped)
    table.on(events.StatusesDue, lambda _, now: wanted.updates.statuses_due(now))
    table.on(events.SyncTick, actual.ticks.on_sync_tick)
    table.on(events.EventsRestored, actual.restored.on_events)
    table.on(events.EndsRestored, actual.restored.on_ends)
    table.on(events.ProbeResultsRestored, actual.restored.on_probe_results)
    table.on(events.ResourcesRestored, actual.restored.on_resources)
    table.on(events.EvictionsRestored, wanted.updates.on_evictions_restored)
    table.on(events.BindingsRestored, wanted.objects.on_bindings_restored)
    table.on(events.ContainerRestartsRestored, wanted.container_restarts.on_restored)
    table.on(events.ContainerRestartRequested, wanted.container_restarts.on_request)
    table.on(events.FreezeRequest, reports.pauses.on_request)
    table.on(events.HostAddressesChanged, actual.node_updates.on_host_addresses_changed)
    table.on(events.SettingsChanged, actual.node_updates.on_settings_changed)
    table.on(events.DevicesChanged, actual.node_updates.on_devices_changed)
    return table


def _settling(reports: Reports, wanted: DesiredHandlers, actual: ActualHandlers) -> Callable[[Instant], None]:
    """Work that follows from what has changed, after every event."""
    return _in_turn(
        wanted.resizes.retry_due,
        actual.workers.settle,
        actual.dispatcher.dispatch_touched,
        reports.kills.settle,
        actual.pressure.settle,
        wanted.shutdown.advance,
        wanted.stop.stop_next_group,
        actual.dispatcher.dispatch_touched,
        reports.reporter.settle,
        wanted.stop.answer,
        actual.observed.ask,
    )


def _in_turn(*steps: Callable[[Instant], object]) -> Callable[[Instant], None]:
    def carry_out(now: Instant) -> None:
        for step in steps:
            step(now)

    return carry_out
