"""The sync loop's parts, which its handlers share. Each owns its own state."""

from __future__ import annotations

from ipc.node_resources import NodeResources
from supervisor.announcer import Announcer
from supervisor.config_objects import ConfigObjectStore
from supervisor.image_pulls import ImagePulls, pull_limits
from supervisor.lives import Lives
from supervisor.looks import Looks
from supervisor.node_usage import NodeUsage
from supervisor.outbox import Outbox
from supervisor.pod_texts import PodTexts
from supervisor.probing import Probing
from supervisor.reporter import Reporter
from supervisor.settings import Settings
from supervisor.sharding import worker_limits
from supervisor.suspects import Suspects
from supervisor.work_queue import WorkQueue
from supervisor.worker_pool import longest_hang_s


class LoopParts:
    """Made once; only the settings are ever replaced."""

    def __init__(self, settings: Settings, pod_rows: int, host_ip: str, node: NodeResources) -> None:
        self.settings = settings
        self.node = node
        self.usage = NodeUsage()
        self.lives = Lives(worker_limits(settings), pod_rows)
        self.suspects = Suspects(longest_hang_s(settings.workers.heartbeat_timeout_s))
        self.looks = Looks()
        self.cache = self.looks.cache
        self.queue = WorkQueue()
        self.evicted: dict[str, str] = {}
        """UID -> message, of pods that were evicted before this agent started and that no source has stated yet."""
        self.objects = ConfigObjectStore()
        self.pulls = ImagePulls(pull_limits(settings))
        self.probing = Probing()
        self.out = Outbox()
        self.texts = PodTexts(self.lives, self.objects)
        self.reporter = Reporter(settings, host_ip, self.texts)
        self.announcer = Announcer(self.reporter, self.cache, self.out)
