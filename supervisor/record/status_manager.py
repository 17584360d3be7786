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


class Reporter:
    """Owns the reason cache, the event history and the feed."""

    def __init__(self, settings: Settings, host_ip: str, texts: PodTexts) -> None:
        self._host_ip = host_ip
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

    def sync_results(self, life: PodLifecycle, done: SyncDone) -> None:
        self._reasons.update(life.uid, done.results)
        if life.pod is not None:
            self._reasons.retain(life.uid, {found.container.name for found in every_container(life.pod.spec)})

    def objects(self, update: ObjectUpdate) -> list[FeedMessage]:
        """ConfigMaps and Secrets, without their values."""
        told = [message for item in update.stated for message in self._feed.object(summarize(item))]
        return told + [message for key in update.gone for message in self._feed.object_gone(key)]

    def event(self, report: EventReport, now: Instant) -> list[FeedMessage]:
        return self._feed.event(*self._events.record(report, now.wall))

    def pod(
        self, life: PodLifecycle, observed: RuntimePodStatus, now: Instant, observed_at: float = 0.0
    ) -> list[FeedMessage]:
        """Generates ``life.status``; an unchanged one is not told again (STAT-01)."""
        assert life.pod is not None
        before, looked_at_before = life.status, life.looked_at
        self._generate(life, observed, now)
        messages = self._feed.pod(self._pod_changed(life, life.pod, observed, observed_at))
        # One that was found ended, after a restart of the agent, was told of in time.
        was_there = looked_at_before or observed.is_running()
        if was_there and _has_exceeded_deadline(life.status) and not _has_exceeded_deadline(before):
            messages += self.event(pod_event(life.pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE), now)
        return messages

    def _generate(self, life: PodLifecycle, observed: RuntimePodStatus, now: Instant) -> None:
        assert life.pod is not None
        replaced = replaced_containers(life.pod, observed, looked_at_before=life.looked_at)
        given = StatusInput(
            pod=life.pod,
            observed=self._texts.observed(life, observed),
            reasons=self._reasons.of_pod(life.uid),
            previous=life.status,
            host_ip=self._host_ip,
            verdicts=life.verdicts,
            replaced=replaced if life.phase is WorkType.SYNC else frozenset(),
            looked_at_before=life.looked_at,
            terminating=life.phase is not WorkType.SYNC,
            terminated=life.phase is WorkType.TERMINATED,
            rejection=life.rejection,
            eviction=life.eviction,
            steady_wall=life.steady_wall(now),
        )
        could_run = life.phase is not WorkType.TERMINATED
        status = generate_pod_status(given, now)
        told = merge_pod_status(life.told, status, could_have_running_containers=could_run)
        # Together, when nothing can go wrong any more.
        life.status, life.told = status, told
        life.looked_at = life.looked_at or given.looked_at

    def _pod_changed(self, life: PodLifecycle, pod: Pod, observed: RuntimePodStatus, observed_at: float) -> PodChanged:
        assert life.told is not None
        return PodChanged(
            resource_version=0,
            pod=pod,
            status=life.told,
            source=life.source,
            deletion_timestamp=rfc3339(life.deletion_wall) if life.deletion_wall else "",
            observed_at=observed_at,
            next_try=self._next_tries(life),
            sentence=life.sentence,
            slot=life.slot,
            sandbox=next(iter(observed.sandboxes), None),
        )

    def _next_tries(self, life: PodLifecycle) -> dict[str, str]:
        """By container. A pod on its way down tries nothing again."""
        return {
            name: f"{result.error} until {rfc3339(result.retry_at)}: {result.message}"
            for name, result in self._reasons.of_pod(life.uid).items()
            if result.retry_at and life.phase is WorkType.SYNC
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
