"""Reports of pods: statuses and events go to the API server's feed and to the agent's log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.host.log.entry import NOBODY, Subject
from ipc.host.text.safe_text import safe_line
from ipc.link.eventloop.tasks import FailureLog
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventReason, EventType
from ipc.link.messages.pod_worker import SyncDone
from ipc.link.messages.sync_error import SyncError
from supervisor.managers.probe_manager import ProbeManager
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import NOTHING_TO_REPORT, Reporting
from supervisor.pods.record import PodRecord
from supervisor.protocol.commands import Log
from supervisor.record.status_manager import StatusManager, pod_event

NO_ANNOTATIONS: Final[Mapping[str, str]] = {}
RETRY_S = 10.0
"""After which a status that could not be generated is tried again, in seconds."""
VIEW_S = 1.0
"""How long the end of a sync waits for the observation that shows what it has done, in seconds."""


class PodReporter:
    """Reports changes of a pod, and repeats reports that failed."""

    def __init__(self, statuses: StatusManager, probes: ProbeManager, cache: PodCache, out: CommandBuffer) -> None:
        self._later: list[PodRecord] = []
        """Pods to report with the end of this event, unless they are reported before."""
        self._unreported: list[PodRecord] = []
        """Pods that are reported anew after a while, unless an event reports them before."""
        self._put_off: list[PodRecord] = []
        """Pods of a batch, which had no status when they came."""
        self._statuses = statuses
        self._probes = probes
        self._cache = cache
        self._out = out

    def report(self, state: PodRecord, now: Instant, *, observed_at: float = 0.0) -> str:
        """Generate the status and report it if it changed; its phase. The date is that of the observation behind it.

        One that cannot be generated stays as it was, and is tried again (`due_again`): nothing was changed by then.
        """
        failures, state.parts.reporting = state.parts.reporting.failures, NOTHING_TO_REPORT
        if state.pod is None:
            return ""
        observed = self._cache.get(state.uid)
        try:
            self._out.to_api(self._statuses.pod(state, observed, self._probes.results(state.uid), now, observed_at))
        except Exception as error:
            failures = failures or FailureLog(f"status of pod {state.name}")
            state.parts.reporting = Reporting(failures=failures, retry_at=now.mono + RETRY_S)
            self._unreported.append(state)
            self._fault(state, failures, "error determining status", error, now)
        return self._statuses.phase(state.uid)

    def report_later(self, state: PodRecord) -> None:
        """Report with the end of this event, unless its handling reports the pod anyway, as a dispatch does."""
        if not state.parts.reporting.is_due:
            state.parts.reporting = msgspec.structs.replace(state.parts.reporting, is_due=True)
            self._later.append(state)

    def report_with_view(self, state: PodRecord, now: Instant) -> None:
        """Report with the observation that was asked for, so that a sync and what it has done are one change; without
        one after a while (`due_again`)."""
        state.parts.reporting = msgspec.structs.replace(state.parts.reporting, view_until=now.mono + VIEW_S)
        self._unreported.append(state)

    def awaits_view(self, state: PodRecord) -> bool:
        """Whether the next observation of the pod is to be reported even if it shows nothing new."""
        return state.parts.reporting.view_until < math.inf

    def put_off(self, state: PodRecord) -> None:
        """Report the first status when the pods of its batch are on their way (`report_batch`), unless something of it
        is to be reported before. Only for a pod of which nothing can be there yet: it is Pending, and goes to its
        worker without being asked for a phase."""
        state.parts.reporting = msgspec.structs.replace(state.parts.reporting, is_put_off=True)
        self._put_off.append(state)

    def is_batch_under_way(self) -> bool:
        """Whether pods of a batch are on their way to their workers, and their first statuses wait."""
        while self._put_off and not self._put_off[-1].parts.reporting.is_put_off:
            self._put_off.pop()
        return bool(self._put_off)

    def report_batch(self, now: Instant) -> None:
        """Report every first status that was put off."""
        put_off, self._put_off = self._put_off, []
        for state in put_off:
            if state.parts.reporting.is_put_off:
                self.report(state, now)

    def settle(self, now: Instant) -> None:
        """Report the pods of `report_later`."""
        later, self._later = self._later, []
        for state in later:
            if state.parts.reporting.is_due:
                self.report(state, now)

    def due_again(self, now: Instant) -> list[PodRecord]:
        """Pods whose status could not be generated, when it is time to try again, and pods whose observation does not
        come."""
        left = [state for state in self._unreported if state.parts.reporting.due_again_at < math.inf]
        self._unreported = [state for state in left if state.parts.reporting.due_again_at > now.mono]
        return [state for state in left if state.parts.reporting.due_again_at <= now.mono]

    def fault(self, state: PodRecord, what: str, error: Exception, now: Instant) -> None:
        """An unexpected error in the master's own work on that pod, which no other pod notices."""
        self._fault(state, FailureLog(f"{what} of pod {state.name}"), what, error, now)

    def _fault(self, state: PodRecord, failures: FailureLog, what: str, error: Exception, now: Instant) -> None:
        if failures.note(error):
            self.pod_event(state, event_reasons.FAILED_SYNC, f"{what}: unexpected {type(error).__name__}", now)

    def event(self, report: EventReport, now: Instant) -> None:
        """Record an event and report it; the log does not have it."""
        self._out.to_api(self._statuses.event(report, now))

    def pod_event(
        self,
        state: PodRecord,
        reason: EventReason,
        message: str,
        now: Instant,
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
    ) -> None:
        """Record an event about the pod as a whole, report it and log it."""
        self.event(msgspec.structs.replace(pod_event(state, reason, message), annotations=dict(annotations)), now)
        level = "warning" if reason.type is EventType.WARNING else "info"
        self._pod_log(level, state, f"{reason}: {message}")

    def sync_ended(self, state: PodRecord, done: SyncDone) -> None:
        """Log the summary of a sync. That Podman is away is logged once for all pods, and for each at level debug."""
        failed = f" [{done.error}: {done.message}]" if done.error else ""
        is_only_away = done.error is SyncError.UNAVAILABLE and not done.changed
        level = "debug" if is_only_away else "warning" if done.error else "info"
        text = safe_line(f"{state.name}: {done.summary}{failed}")
        self._out.add(Log(level, text, _subject(state), duration_s=done.took_s, slot=state.slot))

    def _pod_log(self, level: str, state: PodRecord, text: str) -> None:
        self.log(level, f"{state.name}: {text}", _subject(state))

    def log(self, level: str, text: str, subject: Subject = NOBODY) -> None:
        """A line of the sync loop's log."""
        self._out.add(Log(level, safe_line(text), subject))


def _subject(state: PodRecord) -> Subject:
    namespace, _, name = state.name.partition("/")
    return Subject(namespace=namespace, name=name, uid=state.uid)
