"""Assembly of the sync loop: each class gets the collaborators that its constructor names."""

from __future__ import annotations

import random

from supervisor.admission.node_usage import NodeUsage
from supervisor.config.settings import Settings
from supervisor.desired.claim_holders import ClaimHolders
from supervisor.desired.object_updates import ObjectUpdates
from supervisor.desired.orphans import Orphans
from supervisor.desired.pod_admission import PodAdmission
from supervisor.desired.pod_updates import PodUpdates
from supervisor.desired.resizes import Resizes
from supervisor.desired.volume_updates import VolumeUpdates
from supervisor.loop.answered import Answered
from supervisor.loop.dispatcher import Dispatcher
from supervisor.loop.observed import Observed
from supervisor.loop.periodic_syncs import PeriodicSyncs
from supervisor.loop.pod_steps import PodSteps
from supervisor.loop.probe_updates import ProbeUpdates
from supervisor.loop.restored import Restored
from supervisor.loop.sync_messages import SyncMessages
from supervisor.loop.ticks import Ticks
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.managers.image_pulls import ImagePulls, pull_limits
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.managers.object_store import ObjectStore
from supervisor.managers.probe_manager import ProbeManager
from supervisor.node.garbage import Garbage
from supervisor.node.node_pressure import NodePressureManager
from supervisor.node.node_shutdown import NodeShutdown
from supervisor.node.node_updates import NodeUpdates
from supervisor.node.pod_cgroups import PodCgroupPlans
from supervisor.node.pressure_conditions import PressureConditions
from supervisor.node.worker_updates import WorkerUpdates
from supervisor.podcontrol.active_pods import ActivePods
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.container_restarts import ContainerRestarts, RequestedRestarts
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_kills import PodKills
from supervisor.podcontrol.pod_pauses import PodPauses
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.pod_stop import PodStop
from supervisor.podcontrol.removals import PodRemovals
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import KnownPods
from supervisor.pods.sharding import worker_limits
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue
from supervisor.processes.worker_pool import longest_hang_s
from supervisor.record.pod_texts import PodTexts
from supervisor.record.status_manager import StatusManager


class Owners:
    """Owners of pods' state."""

    def __init__(self, settings: Settings, pod_rows: int, node: ThisNode, out: CommandBuffer) -> None:
        self.known = KnownPods()
        self.pod_table = PodTable(worker_limits(settings), pod_rows, out.is_up, self.known)
        self.crashes = CrashAttribution(longest_hang_s(settings.workers.heartbeat_timeout_s), self.known)
        self.ended = EndedContainers(self.known)
        self.observation_requests = ObservationRequests(self.known, self.ended.merged)
        self.cache = self.observation_requests.cache
        self.queue = WorkQueue(self.known)
        self.objects = ObjectStore()
        self.pulls = ImagePulls(pull_limits(settings))
        self.probes = ProbeManager(self.known)
        self.allocations = AllocationManager(self.known)
        self.devices = DeviceManager(node.view.resources.devices, self.allocations, self.cache.statuses)
        self.restarts = RequestedRestarts(self.known)
        self.usage = NodeUsage()


class Reports:
    """Owners of what is told of pods, and those whose acts are told at once."""

    def __init__(self, o: Owners, host_ips: tuple[str, ...], node: ThisNode, out: CommandBuffer) -> None:
        settings, controllers = node.view.settings, node.view.resources.controllers
        self.texts = PodTexts(o.pod_table, o.objects)
        self.statuses = StatusManager(settings, host_ips, self.texts, o.known, o.pod_table, o.allocations, controllers)
        self.reporter = PodReporter(self.statuses, o.probes, o.cache, out)
        self.waits = HeldUpPods()
        self.pauses = PodPauses(o.pod_table, o.cache, self.statuses, self.reporter, out)
        self.kills = PodKills(o.pod_table, self.statuses, self.reporter, out)
        self.tracking = PodTracking(
            o.pod_table, o.observation_requests, o.probes, self.statuses, self.pauses, out, o.usage
        )


class DesiredHandlers:
    """Handlers of what is wanted."""

    def __init__(self, o: Owners, r: Reports, node: ThisNode, out: CommandBuffer) -> None:
        table, cache, statuses, kills, reporter = o.pod_table, o.cache, r.statuses, r.kills, r.reporter
        active_pods = ActivePods(table, o.usage)
        self.removals = PodRemovals(table, cache, o.crashes, reporter, out)
        self.stop = PodStop(node, table, cache, self.removals, out)
        self.orphans = Orphans(table, cache, r.tracking, self.removals, self.stop, reporter)
        self.shutdown = NodeShutdown(node, o.known, table, cache, statuses, kills, reporter, out)
        self.resizes = Resizes(
            node, table, cache, o.allocations, o.usage, active_pods, self.removals, r.tracking, reporter
        )
        self.admission = PodAdmission(
            node,
            o.known,
            active_pods,
            table,
            cache,
            statuses,
            o.usage,
            o.allocations,
            o.devices,
            kills,
            self.shutdown,
            self.resizes,
            reporter,
        )
        self.updates = PodUpdates(
            o.known,
            table,
            cache,
            statuses,
            o.allocations,
            o.crashes,
            kills,
            self.shutdown,
            self.admission,
            self.removals,
            self.stop,
            r.tracking,
            reporter,
            out,
        )
        holders = ClaimHolders(table, cache, r.tracking)
        self.volumes = VolumeUpdates(node, table, o.known, holders, reporter, out)
        self.delivery = ObjectDelivery(o.objects, self.volumes.claims_of, self.volumes.cluster_values)
        self.objects = ObjectUpdates(
            table, o.objects, self.volumes, o.known, self.delivery, statuses, r.tracking, reporter, out
        )
        self.container_restarts = ContainerRestarts(o.restarts, table, cache, reporter)


class ActualHandlers:
    """Handlers of what happens to pods, and of what the node does by itself."""

    def __init__(
        self, o: Owners, r: Reports, wanted: DesiredHandlers, node: ThisNode, out: CommandBuffer, rng: random.Random
    ) -> None:
        table, cache, statuses, reporter = o.pod_table, o.cache, r.statuses, r.reporter
        is_all_known = wanted.stop.is_all_known
        self.restored = Restored(statuses, o.ended, o.probes, o.allocations, out)
        self.node_updates = NodeUpdates(node, table, o.devices, statuses, reporter)
        self.garbage = Garbage(node, table, cache, statuses, reporter, out, is_all_known)
        self.cgroups = PodCgroupPlans(node, o.known, table, cache, out, is_all_known)
        self.conditions = PressureConditions(node, reporter)
        self.pressure = NodePressureManager(
            node,
            self.conditions,
            table,
            cache,
            statuses,
            r.kills,
            reporter,
            out,
            is_all_known,
            self.garbage.collect_unused_images,
        )
        self.workers = WorkerUpdates(
            table,
            o.observation_requests,
            statuses,
            o.allocations,
            o.ended,
            o.probes,
            o.pulls,
            o.crashes,
            self.garbage,
            self.cgroups,
            reporter,
            out,
        )
        self.observed = Observed(
            table,
            o.observation_requests,
            r.texts,
            o.ended,
            o.probes,
            o.allocations,
            o.restarts,
            o.devices,
            wanted.removals,
            reporter,
            out,
        )
        self.answered = Answered(
            node,
            table,
            o.observation_requests,
            o.queue,
            o.crashes,
            o.ended,
            o.pulls,
            statuses,
            r.kills,
            r.pauses,
            wanted.resizes,
            reporter,
            out,
            rng,
        )
        self.probing = ProbeUpdates(table, cache, o.probes, statuses, o.crashes, r.pauses, reporter, out)
        self.steps = PodSteps(o.observation_requests, o.crashes, o.devices, r.pauses, wanted.admission, out)
        self.dispatcher = _dispatcher(o, r, wanted, self.steps, self.probing, node, out)
        self.ticks = Ticks(
            table,
            r.waits,
            statuses,
            wanted.updates,
            wanted.objects,
            self.workers,
            self.answered,
            self.dispatcher,
            PeriodicSyncs(node, table, cache, o.queue, r.tracking, rng),
            self.garbage,
            self.cgroups,
            self.conditions,
            reporter,
            out,
        )


def _dispatcher(
    o: Owners,
    r: Reports,
    wanted: DesiredHandlers,
    steps: PodSteps,
    probing: ProbeUpdates,
    node: ThisNode,
    out: CommandBuffer,
) -> Dispatcher:
    syncs = SyncMessages(
        node,
        o.observation_requests,
        r.statuses,
        o.allocations,
        o.devices,
        o.probes,
        o.restarts,
        o.ended,
        o.crashes,
        r.pauses,
        wanted.volumes.controller,
    )
    return Dispatcher(
        o.pod_table,
        o.observation_requests,
        o.queue,
        r.waits,
        o.devices,
        wanted.delivery,
        wanted.resizes,
        wanted.updates,
        steps,
        syncs,
        probing,
        r.tracking,
        r.reporter,
        out,
    )
