"""The sync loop's parts, which its handlers share. Each owns its own state."""

from __future__ import annotations

from ipc.podresources.node_resources import NodeResources
from supervisor.admission.node_usage import NodeUsage
from supervisor.config.settings import Settings
from supervisor.managers.image_pulls import ImagePulls, pull_limits
from supervisor.managers.object_store import ObjectStore
from supervisor.managers.probe_manager import ProbeManager
from supervisor.podworkers.observation_requests import ObservationRequests
from supervisor.podworkers.pod_table import PodTable
from supervisor.podworkers.poison_pods import PoisonPods
from supervisor.podworkers.sharding import worker_limits
from supervisor.podworkers.work_queue import WorkQueue
from supervisor.processes.worker_pool import longest_hang_s
from supervisor.record.pod_texts import PodTexts
from supervisor.record.status_manager import StatusManager
from supervisor.syncloop.announcer import Announcer
from supervisor.syncloop.command_buffer import CommandBuffer


class LoopParts:
    """Made once; only the settings are ever replaced."""

    def __init__(self, settings: Settings, pod_rows: int, host_ips: tuple[str, ...], node: NodeResources) -> None:
        self.settings = settings
        self.node = node
        self.usage = NodeUsage()
        self.pod_table = PodTable(worker_limits(settings), pod_rows)
        self.poison_pods = PoisonPods(longest_hang_s(settings.workers.heartbeat_timeout_s))
        self.observation_requests = ObservationRequests()
        self.cache = self.observation_requests.cache
        self.queue = WorkQueue()
        self.evicted: dict[str, str] = {}
        """UID -> message, of pods that were evicted before this agent started and that no source has stated yet."""
        self.objects = ObjectStore()
        self.pulls = ImagePulls(pull_limits(settings))
        self.probing = ProbeManager()
        self.out = CommandBuffer()
        self.texts = PodTexts(self.pod_table, self.objects)
        self.reporter = StatusManager(settings, host_ips, self.texts)
        self.announcer = Announcer(self.reporter, self.cache, self.out)
