"""What the world is told of every pod: status, reasons, events, and the feed that carries them to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.api.v1.event import Event
from ipc.api.v1.pod import Pod
from ipc.api.v1.status import PodStatus
from ipc.host.clock import Instant, rfc3339
from ipc.kubecontainer.pod_containers import every_container
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.api_server import PodChanged
from ipc.messages.base import EventReport
from ipc.messages.pod_worker import SyncDone, WorkType
from supervisor.config.settings import Settings
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.protocol.manifests import ObjectUpdate
from supervisor.record.feed import Feed, FeedMessage
from supervisor.record.object_summary import summarize
from supervisor.record.pod_texts import PodTexts
from supervisor.record.reason_cache import ReasonCache
from supervisor.record.recorder import EventRecorder
from supervisor.status.active_deadline import DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE
from supervisor.status.generate import StatusInput, generate_pod_status
from supervisor.status.replaced import replaced_containers
from supervisor.status.report import merge_pod_status


class StatusManager:
    """Owns the reason cache, the event history and the feed."""

    def __init__(self, settings: Settings, host_ips: tuple[str, ...], texts: PodTexts) -> None:
        self.host_ips = host_ips
        """At most one of each family, as they are now."""
        self._texts = texts
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

    def sync_results(self, lifecycle: PodLifecycle, done: SyncDone) -> None:
        self._reasons.update(lifecycle.uid, done.results)
        if lifecycle.pod is not None:
            self._reasons.retain(lifecycle.uid, {found.container.name for found in every_container(lifecycle.pod.spec)})

    def objects(self, update: ObjectUpdate) -> list[FeedMessage]:
        """ConfigMaps and Secrets, without their values."""
        told = [message for item in update.stated for message in self._feed.object(summarize(item))]
        return told + [message for key in update.gone for message in self._feed.object_gone(key)]

    def event(self, report: EventReport, now: Instant) -> list[FeedMessage]:
        return self._feed.event(*self._events.record(report, now.wall))

    def pod(
        self, lifecycle: PodLifecycle, observed: RuntimePodStatus, now: Instant, observed_at: float = 0.0
    ) -> list[FeedMessage]:
        """Generates ``life.status``; an unchanged one is not told again (STAT-01)."""
        assert lifecycle.pod is not None
        before, looked_at_before = lifecycle.status, lifecycle.looked_at
        self._generate(lifecycle, observed, now)
        messages = self._feed.pod(self._pod_changed(lifecycle, lifecycle.pod, observed, observed_at))
        # One that was found ended, after a restart of the agent, was told of in time.
        was_there = looked_at_before or observed.is_running()
        if was_there and _has_exceeded_deadline(lifecycle.status) and not _has_exceeded_deadline(before):
            messages += self.event(
                pod_event(lifecycle.pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE), now
            )
        return messages

    def _generate(self, lifecycle: PodLifecycle, observed: RuntimePodStatus, now: Instant) -> None:
        assert lifecycle.pod is not None
        replaced = replaced_containers(lifecycle.pod, observed, looked_at_before=lifecycle.looked_at)
        given = StatusInput(
            pod=lifecycle.pod,
            observed=self._texts.observed(lifecycle, observed),
            reasons=self._reasons.of_pod(lifecycle.uid),
            previous=lifecycle.status,
            host_ips=self.host_ips,
            probe_results=lifecycle.probe_results,
            replaced=replaced if lifecycle.phase is WorkType.SYNC else frozenset(),
            looked_at_before=lifecycle.looked_at,
            terminating=lifecycle.phase is not WorkType.SYNC,
            terminated=lifecycle.phase is WorkType.TERMINATED,
            rejection=lifecycle.rejection,
            eviction=lifecycle.eviction,
            steady_wall=lifecycle.steady_wall(now),
        )
        could_run = lifecycle.phase is not WorkType.TERMINATED
        status = generate_pod_status(given, now)
        told = merge_pod_status(lifecycle.told, status, could_have_running_containers=could_run)
        # Together, when nothing can go wrong any more.
        lifecycle.status, lifecycle.told = status, told
        lifecycle.looked_at = lifecycle.looked_at or given.looked_at

    def _pod_changed(
        self, lifecycle: PodLifecycle, pod: Pod, observed: RuntimePodStatus, observed_at: float
    ) -> PodChanged:
        assert lifecycle.told is not None
        return PodChanged(
            resource_version=0,
            pod=pod,
            status=lifecycle.told,
            source=lifecycle.source,
            deletion_timestamp=rfc3339(lifecycle.deletion_wall) if lifecycle.deletion_wall else "",
            observed_at=observed_at,
            next_try=self._next_tries(lifecycle),
            summary=lifecycle.summary,
            slot=lifecycle.slot,
            sandbox=next(iter(observed.sandboxes), None),
        )

    def _next_tries(self, lifecycle: PodLifecycle) -> dict[str, str]:
        """By container. A pod on its way down tries nothing again."""
        return {
            name: f"{result.error} until {rfc3339(result.retry_at)}: {result.message}"
            for name, result in self._reasons.of_pod(lifecycle.uid).items()
            if result.retry_at and lifecycle.phase is WorkType.SYNC
        }

    def gone(self, uid: str) -> list[FeedMessage]:
        self._reasons.remove(uid)
        return self._feed.pod_gone(uid)

    def everything(self) -> list[FeedMessage]:
        return self._feed.everything()


def _has_exceeded_deadline(status: PodStatus | None) -> bool:
    return status is not None and status.reason == DEADLINE_EXCEEDED


def pod_event(pod: Pod, type_: str, reason: str, message: str) -> EventReport:
    """An event about the pod as a whole."""
    meta = pod.metadata
    return EventReport(
        uid=meta.uid, namespace=meta.namespace, name=meta.name, type=type_, reason=reason, message=message
    )
