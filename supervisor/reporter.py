"""What the world is told of every pod: status, reasons, events, and the feed that carries them to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.api import Event
from ipc.clock import Instant, rfc3339
from ipc.messages import EventReport, PodChanged, SyncDone, WorkType
from ipc.runtime import RuntimePodStatus
from supervisor.events import EventRecorder
from supervisor.feed import Feed, FeedMessage
from supervisor.pod_lifecycle import PodLifecycle
from supervisor.reason_cache import ReasonCache
from supervisor.settings import Settings
from supervisor.status import StatusInput, generate_pod_status


class Reporter:
    """Owns the reason cache, the event history and the feed."""

    def __init__(self, settings: Settings, host_ip: str) -> None:
        self._host_ip = host_ip
        self._reasons = ReasonCache()
        self._events = EventRecorder(
            settings.node_name, settings.event_history.max_events, settings.event_history.ttl_s
        )
        self._feed = Feed()

    def settings_changed(self, settings: Settings) -> None:
        self._events.resize(settings.event_history.max_events, settings.event_history.ttl_s)

    @property
    def event_history(self) -> EventRecorder:
        """For reading."""
        return self._events

    def restore_events(self, events: Iterable[Event], now: Instant) -> list[FeedMessage]:
        """Those that an earlier life of the agent has left."""
        self._events.restore(events, now.wall)
        return [message for event in self._events.events() for message in self._feed.event(event)]

    def expire_events(self, now: Instant) -> list[FeedMessage]:
        return self._feed.events_gone(self._events.expire(now.wall))

    def sync_results(self, life: PodLifecycle, done: SyncDone) -> None:
        self._reasons.update(life.uid, done.results)

    def event(self, report: EventReport, now: Instant) -> list[FeedMessage]:
        return self._feed.event(*self._events.record(report, now.wall))

    def pod(
        self, life: PodLifecycle, observed: RuntimePodStatus, now: Instant, observed_at: float = 0.0
    ) -> list[FeedMessage]:
        """Generates ``life.status``; an unchanged one is not told again (STAT-01)."""
        assert life.pod is not None
        reasons = self._reasons.of_pod(life.uid)
        life.status = generate_pod_status(
            StatusInput(
                pod=life.pod,
                observed=observed,
                reasons=reasons,
                previous=life.status,
                host_ip=self._host_ip,
                terminating=life.phase is not WorkType.SYNC,
                terminated=life.phase is WorkType.TERMINATED,
                failure=life.failure,
            ),
            now,
        )
        waits = {
            name: f"{result.error} until {rfc3339(result.retry_at)}: {result.message}"
            for name, result in reasons.items()
            if result.retry_at
        }
        return self._feed.pod(
            PodChanged(
                resource_version=0,
                pod=life.pod,
                status=life.status,
                source=life.source,
                deletion_timestamp=rfc3339(life.deletion_wall) if life.removed and life.deletion_wall else "",
                observed_at=observed_at,
                next_try=waits,
                sentence=life.sentence,
            )
        )

    def gone(self, uid: str) -> list[FeedMessage]:
        self._reasons.remove(uid)
        return self._feed.pod_gone(uid)

    def everything(self) -> list[FeedMessage]:
        return self._feed.everything()
