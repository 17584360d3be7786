"""What the reporter says of a pod, on its way to those who hear it: the API server's feed and the agent's log."""

from __future__ import annotations

from ipc.clock import Instant
from ipc.messages import EventReport, SyncDone
from ipc.safe_text import safe_line
from supervisor.dialogue import Log
from supervisor.outbox import Outbox
from supervisor.pod_cache import PodCache
from supervisor.pod_lifecycle import PodLifecycle
from supervisor.reporter import Reporter, pod_event

UNAVAILABLE = "Unavailable"
"""A sync's error: Podman does not answer."""


class Announcer:
    """Puts it into the outbox."""

    def __init__(self, reporter: Reporter, cache: PodCache, out: Outbox) -> None:
        self._reporter = reporter
        self._cache = cache
        self._out = out

    def report(self, life: PodLifecycle, now: Instant, *, observed_at: float = 0.0) -> str:
        """Generate the status, tell it if it changed; its phase. The date is of the observation that is the reason."""
        if life.pod is None:
            return ""
        self._out.to_api(self._reporter.pod(life, self._cache.get(life.uid), now, observed_at))
        return life.status.phase if life.status is not None else ""

    def event(self, report: EventReport, now: Instant) -> None:
        """For `get events` alone."""
        self._out.to_api(self._reporter.event(report, now))

    def pod_event(self, life: PodLifecycle, type_: str, reason: str, message: str, now: Instant) -> None:
        """About a pod that is no orphan; in the log too."""
        assert life.pod is not None
        self.event(pod_event(life.pod, type_, reason, message), now)
        self.log("warning" if type_ == "Warning" else "info", f"{life.name}: {reason}: {message}")

    def sync_ended(self, life: PodLifecycle, done: SyncDone) -> None:
        """That Podman is away was said once: that it is for every pod is for who wants to know everything."""
        failed = f" [{done.error}: {done.message}]" if done.error else ""
        is_only_away = done.error == UNAVAILABLE and not done.changed
        level = "debug" if is_only_away else "warning" if done.error else "info"
        self.log(level, f"{life.name}: {done.sentence}{failed}")

    def log(self, level: str, text: str) -> None:
        self._out.add(Log(level, safe_line(text)))
