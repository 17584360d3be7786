"""Status of every pod, as it is generated and as it is reported, and the events about it (pkg/kubelet/status).

The inputs of a status that have no other owner are a part of the pod (`StatusRecord`): why it was rejected or killed,
the failures of its last sync, and the previous status. The feed carries changes to the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES, PodStatus
from ipc.k8s.kubecontainer.frozen import is_frozen
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.podresources.allocation import allocation_from_pod
from ipc.link.messages import event_reasons
from ipc.link.messages.api_server import FeedMessage, FeedReplay, PodChanged
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.pod_worker import SyncDone, WorkType
from supervisor.config.settings import Settings
from supervisor.managers.allocation import AllocationManager
from supervisor.pods.parts import KnownPods, PodParts
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.source_updates import ObjectUpdate
from supervisor.record.feed import Feed
from supervisor.record.object_summary import summarize
from supervisor.record.pod_texts import PodTexts
from supervisor.record.recorder import EventRecorder
from supervisor.status.active_deadline import DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE, past_active_deadline
from supervisor.status.generate import StatusInput, generate_pod_status
from supervisor.status.replaced import replaced_containers
from supervisor.status.report import merge_pod_status
from supervisor.status.status_record import ReportContext, StatusBasis


class StatusManager:
    """Owns the status record of every pod, the event history and the feed."""

    def __init__(
        self,
        settings: Settings,
        host_ips: tuple[str, ...],
        texts: PodTexts,
        known: KnownPods,
        pod_table: PodTable,
        allocations: AllocationManager,
        controllers: frozenset[str] = frozenset(),
    ) -> None:
        """``controllers``: cgroup controllers that are delegated to this user."""
        self._host_ips = host_ips
        """At most one of each family, as they are now."""
        self._texts = texts
        self._known = known
        self._pod_table = pod_table
        self._allocations = allocations
        self._controllers = controllers
        self._events = EventRecorder(
            settings.node_name, settings.event_history.max_events, settings.event_history.ttl_s
        )
        self._feed = Feed(self._events.packed)

    def host_addresses_changed(self, ips: tuple[str, ...]) -> None:
        """Other addresses are in each status that is generated from now on."""
        self._host_ips = ips

    def settings_changed(self, settings: Settings) -> None:
        self._events.resize(settings.event_history.max_events, settings.event_history.ttl_s)

    @property
    def event_history(self) -> EventRecorder:
        """Owner of the events, for reading."""
        return self._events

    def restore_events(self, events: Iterable[Event], now: Instant) -> list[FeedMessage]:
        """Take over the events that an earlier agent has recorded."""
        self._events.restore(events, now.wall)
        return [message for event in self._events.events() for message in self._feed.event(event)]

    def expire_events(self, now: Instant) -> list[FeedMessage]:
        return self._feed.events_gone(self._events.expire(now.wall))

    # --- what makes a status -------------------------------------------------------------------------------------

    def restored(self, uid: str) -> None:
        """The pod comes from the checkpoint."""
        self._change(self._known.of(uid), is_restored=True)

    def reject(self, uid: str, reason: str, message: str) -> None:
        """The pod was not admitted: it is Failed, whatever its containers say (pkg/kubelet/kubelet.go, rejectPod)."""
        failure = PodFailure(reason=reason, message=f"Pod was rejected: {message}")
        self._change(self._known.of(uid), rejection=failure)

    def is_rejected(self, uid: str) -> bool:
        """Whether the pod was not admitted."""
        return self._known.find(uid).status.rejection is not None

    def end(self, uid: str, failure: PodFailure, *, evict: bool) -> None:
        """The agent ends the pod: it is Failed once nothing of it runs (pkg/kubelet/pod_workers.go, PodStatusFunc).
        ``evict``: later agents are not to run it either."""
        self._change(self._known.of(uid), kill=failure, stays_down=evict)

    def eviction(self, uid: str) -> PodFailure | None:
        """Why the pod was evicted; None if it was not."""
        record = self._known.find(uid).status
        return record.kill if record.stays_down else None

    def failure_reason(self, uid: str) -> str:
        """Reason for which the agent has rejected or ended the pod; empty if it has not."""
        record = self._known.find(uid).status
        failure = record.rejection or record.kill
        return failure.reason if failure is not None else ""

    def is_news(self, uid: str, done: SyncDone) -> bool:
        """Whether that end of a sync is worth a line. Waiting for the same time again is not, nor is failing again for
        the same reason."""
        return self._known.find(uid).status.is_news(done)

    def sync_ended(self, state: PodRecord, done: SyncDone) -> None:
        """The results and the summary of a sync (pkg/kubelet/kubelet.go, SyncPod: reasonCache.Update)."""
        state.parts.status = state.parts.status.sync_ended(done, state.pod)

    def summarize(self, uid: str, text: str) -> None:
        """Replace the summary of the last sync."""
        self._change(self._known.of(uid), summary=text)

    def status(self, uid: str) -> PodStatus | None:
        """The status that is acted on: the newest generated one; None before the first."""
        return self._known.find(uid).status.status

    def phase(self, uid: str) -> str:
        """Phase of that status; empty before the first."""
        status = self._known.find(uid).status.status
        return status.phase if status is not None else ""

    def has_ended(self, uid: str) -> bool:
        """Whether the pod, as it is stated now, starts nothing any more: it is terminal, or was not admitted."""
        record = self._known.find(uid).status
        return record.rejection is not None or (record.status is not None and record.status.phase in TERMINAL_PHASES)

    def is_past_deadline(self, state: PodRecord, now: Instant) -> bool:
        """Whether activeDeadlineSeconds are over and the pod does not go down yet (active_deadline.go, ShouldSync)."""
        if state.lifecycle.phase is not WorkType.SYNC:
            return False
        record = state.parts.status = state.parts.status.with_clock(now)
        start_time = record.status.start_time if record.status is not None else None
        return past_active_deadline(state.pod, start_time, record.steady_wall(now))

    def active_since(self, state: PodRecord) -> str:
        """When a pod whose activity has a deadline began to be active, as RFC 3339; empty without one."""
        status = self.status(state.uid)
        has_deadline = state.pod is not None and state.pod.spec.active_deadline_seconds is not None
        return (status.start_time or "") if has_deadline and status is not None else ""

    def _change(self, parts: PodParts, **changes: object) -> None:
        parts.status = msgspec.structs.replace(parts.status, **changes)

    # --- what is reported ----------------------------------------------------------------------------------------

    def objects(self, update: ObjectUpdate) -> list[FeedMessage]:
        """ConfigMaps and Secrets, without their values."""
        messages = [message for item in update.stated for message in self._feed.object(summarize(item))]
        return messages + [message for key in update.gone for message in self._feed.object_gone(key)]

    def event(self, report: EventReport, now: Instant) -> list[FeedMessage]:
        state = self._pod_table.get(report.uid)
        pod = state.pod if state is not None else None
        first_seen = pod.metadata.annotations.get(CONFIG_SEEN, "") if pod is not None else ""
        return self._feed.event(*self._events.record(report, now.wall, first_seen))

    def pod(
        self,
        state: PodRecord,
        observed: RuntimePodStatus,
        probe_results: Mapping[str, ProbeResults],
        now: Instant,
        observed_at: float = 0.0,
    ) -> list[FeedMessage]:
        """Generates the status; an unchanged one is not reported again (STAT-01)."""
        assert state.pod is not None
        record = state.parts.status = state.parts.status.adopted(state.pod).with_clock(now)
        before, was_observed_before = record.status, record.was_observed
        basis = self._basis(state, state.pod, observed, probe_results)
        is_settled = record.is_settled(basis)
        if not is_settled:
            self._generate(state, basis, observed, now)
        context = self._report_context(state, state.pod, observed)
        if is_settled and context == record.context:
            return []
        messages = self._feed.pod(self._pod_changed(state, context, observed_at))
        self._change(state.parts, context=context)
        # One that was found ended, after a restart of the agent, was reported in time.
        was_there = was_observed_before or observed.is_running()
        if was_there and _has_exceeded_deadline(state.parts.status.status) and not _has_exceeded_deadline(before):
            messages += self.event(pod_event(state, event_reasons.DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE), now)
        return messages

    def _basis(
        self, state: PodRecord, pod: Pod, observed: RuntimePodStatus, probe_results: Mapping[str, ProbeResults]
    ) -> StatusBasis:
        record = state.parts.status
        return StatusBasis(
            pod=pod,
            observed=_undated(self._texts.readable(state, observed)),
            reasons=record.reasons,
            probe_results=dict(probe_results),
            host_ips=self._host_ips,
            phase=state.lifecycle.phase,
            was_observed_before=record.was_observed,
            rejection=record.rejection,
            kill=record.kill,
            resources=self._allocations.resources(state.uid),
            restarts=frozenset(state.parts.restarts),
        )

    def _generate(self, state: PodRecord, basis: StatusBasis, observed: RuntimePodStatus, now: Instant) -> None:
        record, pod, phase = state.parts.status, basis.pod, basis.phase
        given = StatusInput(
            pod=pod,
            observed=basis.observed,
            reasons=basis.reasons,
            previous=_with_gates(record.status, pod),
            host_ips=self._host_ips,
            probe_results=basis.probe_results,
            replaced=self._replaced(basis, observed),
            was_observed_before=record.was_observed,
            paused=is_frozen(basis.observed),
            terminating=phase is not WorkType.SYNC,
            terminated=phase is WorkType.TERMINATED,
            rejection=record.rejection,
            kill=record.kill,
            steady_wall=record.steady_wall(now),
            actuated=basis.resources.actuated,
            resize_conditions=basis.resources.conditions,
        )
        could_run = phase is not WorkType.TERMINATED
        status = generate_pod_status(given, now)
        reported = merge_pod_status(record.reported, status, could_have_running_containers=could_run)
        # Together, when nothing can go wrong any more.
        state.parts.status = record.generated(basis, status, reported)

    def _replaced(self, basis: StatusBasis, observed: RuntimePodStatus) -> frozenset[str]:
        """Names of the containers that start again whatever their policy says: none of a pod that goes down."""
        if basis.phase is not WorkType.SYNC:
            return frozenset()
        redefined = replaced_containers(
            basis.pod,
            observed,
            basis.resources.actuated,
            self._controllers,
            was_observed_before=basis.was_observed_before,
        )
        return redefined | {container.name for container in observed.containers if container.id in basis.restarts}

    def _report_context(self, state: PodRecord, pod: Pod, observed: RuntimePodStatus) -> ReportContext:
        record, stated = state.parts.status, state.stated or pod
        return ReportContext(
            pod=stated,
            source=state.source,
            slot=state.slot,
            deletion_wall=state.lifecycle.deletion_wall,
            is_observed=record.was_observed or not record.is_restored,
            summary=record.summary,
            sandbox=next(iter(observed.sandboxes), None),
            allocated=allocation_from_pod(pod) if stated is not pod else None,
            waits_for=state.reported_wait,
        )

    def _pod_changed(self, state: PodRecord, context: ReportContext, observed_at: float) -> PodChanged:
        reported = state.parts.status.reported
        assert reported is not None
        return PodChanged(
            resource_version=0,
            pod=context.pod,
            status=reported,
            source=context.source,
            deletion_timestamp=rfc3339(context.deletion_wall) if context.deletion_wall is not None else "",
            observed_at=observed_at,
            is_observed=context.is_observed,
            next_try=self._next_tries(state),
            summary=context.summary,
            slot=context.slot,
            sandbox=context.sandbox,
            allocated=context.allocated,
            waits_for=context.waits_for,
        )

    def _next_tries(self, state: PodRecord) -> dict[str, str]:
        """By container. A pod on its way down tries nothing again."""
        return {
            name: f"{result.error} until {rfc3339(result.retry_at)}: {result.message}"
            for name, result in state.parts.status.reasons.items()
            if result.retry_at and state.lifecycle.phase is WorkType.SYNC
        }

    def gone(self, uid: str) -> list[FeedMessage]:
        """Take back the reports of a pod of which nothing is left."""
        return self._feed.pod_gone(uid)

    def everything(self) -> list[FeedReplay]:
        return self._feed.everything()


def _with_gates(status: PodStatus | None, pod: Pod) -> PodStatus | None:
    """With the conditions of the pod's readiness gates, which others set in the cluster."""
    gates = {gate.condition_type for gate in pod.spec.readiness_gates}
    if status is None or not gates:
        return status
    kept = (condition for condition in status.conditions if condition.type not in gates)
    stated = (condition for condition in pod.status.conditions if condition.type in gates)
    return msgspec.structs.replace(status, conditions=(*kept, *stated))


def _undated(observed: RuntimePodStatus) -> RuntimePodStatus:
    return msgspec.structs.replace(observed, observed_at=float(observed.observed_at > 0.0))


def _has_exceeded_deadline(status: PodStatus | None) -> bool:
    return status is not None and status.reason == DEADLINE_EXCEEDED


def pod_event(state: PodRecord, reason: EventReason, message: str) -> EventReport:
    """An event about the pod as a whole, an orphan too."""
    namespace, _, name = state.name.rpartition("/")
    return EventReport(
        uid=state.uid, namespace=namespace, name=name, type=reason.type, reason=reason.reason, message=message
    )
