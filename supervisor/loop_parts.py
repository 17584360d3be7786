"""The sync loop's parts, which its handlers share. Each owns its own state."""

from __future__ import annotations

from supervisor.announcer import Announcer
from supervisor.image_pulls import ImagePulls, pull_limits
from supervisor.lives import Lives
from supervisor.looks import Looks
from supervisor.outbox import Outbox
from supervisor.probing import Probing
from supervisor.reporter import Reporter
from supervisor.settings import Settings
from supervisor.suspects import Suspects
from supervisor.work_queue import WorkQueue
from supervisor.worker_pool import longest_hang_s


class LoopParts:
    """Made once; only the settings are ever replaced."""

    def __init__(self, settings: Settings, workers: int, pod_rows: int, host_ip: str, lowest_port: int) -> None:
        self.settings = settings
        self.lowest_port = lowest_port
        self.lives = Lives(workers, pod_rows)
        self.suspects = Suspects(longest_hang_s(settings.workers.heartbeat_timeout_s))
        self.looks = Looks()
        self.cache = self.looks.cache
        self.queue = WorkQueue()
        self.pulls = ImagePulls(pull_limits(settings))
        self.probing = Probing()
        self.out = Outbox()
        self.reporter = Reporter(settings, host_ip)
        self.announcer = Announcer(self.reporter, self.cache, self.out)
