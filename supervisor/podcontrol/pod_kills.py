"""Pods that the agent itself ends for a reason, and whoever waits for that (pkg/kubelet/pod_workers.go, killPodNow).

Eviction, preemption and shutdown share this: a grace period that replaces the pod's own, a status that says why, and
an end that is waited for no longer than is reasonable. Upstream blocks its caller; here the caller says what to do
then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.pod_worker import WorkType
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.admission.predicates import Rejected
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.lifecycle import effective_grace_period
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.record.status_manager import StatusManager

MIN_WAIT_S: Final = 10.0
"""A pod is waited for so long at least: calls to the runtime take their time, too."""
WAIT_FACTOR: Final = 1.5
"""... and so many times its grace period."""
EXCEEDED: Final = "Container runtime did not kill the pod within specified grace period."

Then = Callable[[bool, Instant], None]
"""Called once: whether the pod ended in time, and when."""


class PodKill(msgspec.Struct, frozen=True, kw_only=True):
    """Why and how a pod is ended (KillPodOptions)."""

    failure: PodFailure
    grace_period_s: int | None = None
    """Replaces the pod's own where it is shorter; None: the pod's own."""
    evict: bool = True
    """The pod stays down, whatever becomes of the agent, and loses its containers; its logs stay."""
    event: EventReason | None = None
    """Row of the pod's event, whose message is the failure's; None: without an event."""
    tells_delay: bool = True
    """An event says so when the pod does not end in time."""
    annotations: dict[str, str] = {}
    """Annotations of that event."""


class _Waiting(msgspec.Struct, frozen=True):
    state: PodRecord
    until: float
    """Monotonic seconds."""
    then: Then
    tells_delay: bool


def _nothing(_in_time: bool, _now: Instant) -> None:
    """Nobody waits."""


class PodKills:
    """Ends pods, and knows which of them are still waited for."""

    def __init__(self, pod_table: PodTable, statuses: StatusManager, reporter: PodReporter, out: CommandBuffer) -> None:
        self._pod_table = pod_table
        self._statuses = statuses
        self._reporter = reporter
        self._out = out
        self._waiting: list[_Waiting] = []
        """A pod that is preempted may be ended by a drain, too, and both wait for its end."""

    def kill(self, state: PodRecord, kill: PodKill, now: Instant, then: Then = _nothing) -> None:
        """End a pod that runs or may run. ``then`` is called by `settle` when nothing of it runs any more, or when that
        takes too long."""
        if kill.event is not None:
            self._reporter.pod_event(state, kill.event, kill.failure.message, now, kill.annotations)
        wait_s = max(WAIT_FACTOR * self._grace_period_s(state, kill), MIN_WAIT_S)
        self._waiting.append(_Waiting(state, now.mono + wait_s, then, kill.tells_delay))
        self.end(state, kill.failure, kill.grace_period_s, evict=kill.evict)
        self._reporter.report(state, now)

    def end(self, state: PodRecord, failure: PodFailure, grace_period_s: int | None, *, evict: bool) -> None:
        """End a pod without waiting for it, and without an event."""
        self._statuses.end(state.uid, failure, evict=evict)
        if state.lifecycle.terminate(grace_period_s):
            self._out.cancel_sync(state)
        self._pod_table.touch((state.uid,))

    def reject(self, state: PodRecord, why: Rejected, now: Instant) -> None:
        """The pod was not admitted: it has failed (rejectPod and recordAdmissionRejection, pkg/kubelet/kubelet.go)."""
        known = why.reason if why.reason in metrics.ADMISSION_REASONS else "Other"
        METERS.counter(metrics.ADMISSION_REJECTIONS, known).inc()
        self._statuses.reject(state.uid, why.reason, why.message)
        state.lifecycle.terminate()
        self._reporter.pod_event(state, event_reasons.rejected(why.reason), why.message, now)

    def is_awaited(self, uid: str) -> bool:
        """Whether that pod is being ended, and not late yet."""
        return any(waiting.state.uid == uid for waiting in self._waiting)

    def settle(self, now: Instant) -> bool:
        """Tell those who wait for pods that have ended, or that take too long; whether there were any."""
        over = [waiting for waiting in self._waiting if _has_ended(waiting.state) or waiting.until <= now.mono]
        for waiting in over:
            in_time = _has_ended(waiting.state)
            self._drop(waiting)
            if not in_time and waiting.tells_delay:
                self._reporter.pod_event(waiting.state, event_reasons.EXCEEDED_GRACE_PERIOD, EXCEEDED, now)
            waiting.then(in_time, now)
        return bool(over)

    def begins_anew(self, uid: str, now: Instant) -> None:
        """A pod of that uid comes, so the one before has ended, whether `settle` has seen it or not."""
        before = [waiting for waiting in self._waiting if waiting.state.uid == uid]
        for waiting in before:
            self._drop(waiting)
            waiting.then(True, now)

    def _drop(self, over: _Waiting) -> None:
        self._waiting = [waiting for waiting in self._waiting if waiting is not over]

    def _grace_period_s(self, state: PodRecord, kill: PodKill) -> int:
        if kill.grace_period_s is not None:
            return kill.grace_period_s
        return effective_grace_period(state.pod, None, None) if state.pod is not None else 0


def _has_ended(state: PodRecord) -> bool:
    """Nothing of it runs (pkg/kubelet/pod_workers.go, completeTerminating)."""
    return state.lifecycle.phase is WorkType.TERMINATED
