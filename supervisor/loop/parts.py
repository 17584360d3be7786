"""The sync loop's parts, which its handlers share. Each owns its own state."""

from __future__ import annotations

from ipc.podresources.node_resources import NodeResources
from supervisor.admission.node_usage import NodeUsage
from supervisor.config.settings import Settings
from supervisor.loop.announcer import Announcer
from supervisor.loop.command_buffer import CommandBuffer
from supervisor.loop.container_restarts import RequestedRestarts
from supervisor.loop.incomplete_pods import IncompletePods
from supervisor.loop.node_view import ThisNode
from supervisor.loop.pod_kills import PodKills
from supervisor.loop.pod_pauses import PodPauses
from supervisor.loop.tracking import PodTracking
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.managers.image_pulls import ImagePulls, pull_limits
from supervisor.managers.object_store import ObjectStore
from supervisor.managers.probe_manager import ProbeManager
from supervisor.pods.ended_containers import EndedContainers
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.observation_requests import ObservationRequests
from supervisor.pods.parts import KnownPods
from supervisor.pods.poison import PoisonPods
from supervisor.pods.sharding import worker_limits
from supervisor.pods.table import PodTable
from supervisor.pods.work_queue import WorkQueue
from supervisor.processes.worker_pool import fed_slots, longest_hang_s
from supervisor.record.pod_texts import PodTexts
from supervisor.record.status_manager import StatusManager


class LoopParts:
    """Made once."""

    def __init__(self, settings: Settings, pod_rows: int, host_ips: tuple[str, ...], node: NodeResources) -> None:
        self.node = ThisNode(settings, node)
        self.usage = NodeUsage()
        self.out = CommandBuffer(fed_slots(is_member=settings.cluster.is_configured))
        self.known = KnownPods()
        self.pod_table = PodTable(worker_limits(settings), pod_rows, self.out.is_up, self.known)
        self.poison_pods = PoisonPods(longest_hang_s(settings.workers.heartbeat_timeout_s), self.known)
        self.ended = EndedContainers(self.known)
        self.observation_requests = ObservationRequests(self.ended.merged)
        self.cache = self.observation_requests.cache
        self.queue = WorkQueue(self.known)
        self.waits = HeldUpPods()
        self.objects = ObjectStore()
        self.incomplete = IncompletePods()
        self.pulls = ImagePulls(pull_limits(settings))
        self.probes = ProbeManager()
        self.texts = PodTexts(self.pod_table, self.objects)
        self.allocations = AllocationManager(self.known)
        self.devices = DeviceManager(node.devices, self.allocations, self.cache.statuses)
        self.restarts = RequestedRestarts(self.known)
        self.statuses = StatusManager(
            settings,
            host_ips,
            self.texts,
            self.pod_table,
            self.allocations,
            node.controllers,
        )
        self.announcer = Announcer(self.statuses, self.probes, self.cache, self.out)
        self.pauses = PodPauses(self.pod_table, self.cache, self.statuses, self.announcer, self.out)
        self.kills = PodKills(self.pod_table, self.statuses, self.announcer, self.out)
        self.tracking = PodTracking(self.pod_table, self.observation_requests, self.probes, self.out)
