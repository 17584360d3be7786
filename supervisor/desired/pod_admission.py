"""Admission of pods beside those that are there, and the pods that a critical one pushes out (AddPod,
pkg/kubelet/allocation/allocation_manager.go; pkg/kubelet/preemption).

Upstream blocks until the preempted pods have ended; here the pod that has got their room is admitted at once and not
synced before that. Whoever is admitted meanwhile counts on their room, too, and waits like it.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.scheduling.priority import is_critical, pod_priority
from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages import event_reasons
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import (
    UNEXPECTED_ADMISSION_ERROR,
    Rejected,
    Verdict,
    admitted,
    rejection,
    verdict,
)
from supervisor.admission.preemption import recover
from supervisor.admission.pressure import pressure_problem
from supervisor.desired.resizes import Resizes
from supervisor.managers.allocation import AllocationManager
from supervisor.managers.devices import DeviceManager
from supervisor.node.node_shutdown import NOT_ADMITTED, NodeShutdown
from supervisor.podcontrol.active_pods import ActivePods
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_kills import PodKill, PodKills
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import KnownPods, Preemption
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.manifests import created_at, pod_key
from supervisor.record.status_manager import StatusManager

PREEMPTED: Final = PodFailure(
    reason=event_reasons.PREEMPTING.reason,
    message="Preempted in order to admit critical pod",
    disruption="Pod was preempted by Kubelet to accommodate a critical pod.",
)

RESTORED_GRACE_PERIOD_S: Final = 1
"""Grace period of a pod that an agent before has evicted: it has had its time."""


class PodAdmission(msgspec.Struct, eq=False):
    """Decides on pods, ends those that give way, and knows who waits for their end."""

    _node: ThisNode
    _known: KnownPods
    _active_pods: ActivePods
    _pod_table: PodTable
    _cache: PodCache
    _statuses: StatusManager
    _usage: NodeUsage
    _allocations: AllocationManager
    _devices: DeviceManager
    _kills: PodKills
    _shutdown: NodeShutdown
    _resizes: Resizes
    _reporter: PodReporter
    _unwarned: list[PodRecord] = []
    """Pods of a batch whose fields were not reported on when they came."""

    def is_waiting(self, state: PodRecord) -> bool:
        """Whether the room that the pod was admitted to is not free yet, or it may have to end with the node."""
        return bool(state.parts.preemption.victims) or self._shutdown.holds(state)

    def admit(self, pod: Pod) -> Rejected | None:
        """Admission of an edit; None: it is admitted. Nobody gives way to it. Beside every pod of which something is
        left; if that rejects it, beside those that stay up. To find these every time would be work that grows with the
        square of their number."""
        try:
            if problem := self._devices.problem(pod, self._active_pods.inactive):
                return Rejected(UNEXPECTED_ADMISSION_ERROR, problem)
            if (
                rejection(
                    pod, self._usage.without({pod.metadata.uid}), self._node.view.settings, self._node.view.resources
                )
                is None
            ):
                return None
            return rejection(pod, self._active_pods.beside(pod), self._node.view.settings, self._node.view.resources)
        except Exception as error:
            return _unexpected(pod, error)

    def allocate(self, state: PodRecord, pod: Pod, stated: Pod) -> None:
        """The pod has what it was allocated; what it asks for besides is a resize."""
        self._usage.put(pod)
        self._allocations.allocate(pod)
        self._devices.allocate(pod)
        self._resizes.stated(state, stated)
        self._resizes.wake()

    def warn(self, state: PodRecord, pod: Pod, now: Instant) -> None:
        """Tell of the fields of an admitted pod that are not acted on."""
        state.parts.is_unwarned = False
        for warning in self._warnings(pod):
            self._reporter.pod_event(state, event_reasons.UNSUPPORTED_FIELD, warning, now)

    def warn_later(self, state: PodRecord) -> None:
        """Tell of them when the batch is over in which the pod has come."""
        state.parts.is_unwarned = True
        self._unwarned.append(state)

    def warn_put_off(self, now: Instant) -> None:
        """Tell of what was put off."""
        unwarned, self._unwarned = self._unwarned, []
        for state in unwarned:
            if state.parts.is_unwarned and state.pod is not None:
                self.warn(state, state.pod, now)

    def _warnings(self, pod: Pod) -> tuple[str, ...]:
        try:
            return admitted(pod, self._node.view.resources).warnings
        except Exception as error:
            note_failure(f"warnings of pod {'/'.join(pod_key(pod))}", error)
            return ()

    def admit_new(self, pod: Pod, now: Instant) -> Rejected | None:
        """Admission of a pod that comes: not while the node goes down or is short of something, unless it runs already,
        and others give way to a critical one."""
        if self._shutdown.is_gathering:
            self._shutdown.comes(pod.metadata.uid)
            return self.admit(pod)
        if self._shutdown.is_under_way:
            return NOT_ADMITTED
        is_running = self._cache.get(pod.metadata.uid).is_running()
        if not is_running and (problem := pressure_problem(pod, self._node.view.pressures)):
            return Rejected(*problem)
        rejected = self.admit(pod)
        if rejected is None or not (is_critical(pod) or self._victims()):
            return rejected
        try:
            return self._admit_in_freed_room(pod, now)
        except Exception as error:
            return _unexpected(pod, error)

    def begins_after_all(self, state: PodRecord, now: Instant) -> None:
        """A pod that came while an interrupted shutdown was looked into, which is called off now: nobody has asked then
        whether the node is short of something."""
        if state.pod is None or not state.lifecycle.active or self._statuses.is_rejected(state.uid):
            return
        is_running = self._cache.get(state.uid).is_running()
        if not is_running and (problem := pressure_problem(state.pod, self._node.view.pressures)):
            self._kills.reject(state, Rejected(*problem), now)
            self._reporter.report(state, now)

    def _admit_in_freed_room(self, pod: Pod, now: Instant) -> Rejected | None:
        """Beside those that stay up, without the ones that were preempted already; if that is not enough and the pod is
        critical, after others were preempted, too."""
        if problem := self._devices.problem(pod, self._active_pods.inactive):  # for want of a device nobody gives way
            return Rejected(UNEXPECTED_ADMISSION_ERROR, problem)
        found = verdict(
            pod, self._active_pods.beside(pod, self._victims()), self._node.view.settings, self._node.view.resources
        )
        if found.rejections or found.shortages:
            active = (state.pod for state in self._pod_table if state.pod and self._may_give_way(state))
            victims = recover(pod, found.rejections, found.shortages, sorted(active, key=_last_to_stay))
            if isinstance(victims, Rejected):
                return victims
            self._preempt(pod, {victim.metadata.uid for victim in victims}, found, now)
        self._known.of(pod.metadata.uid).preemption = Preemption(victims=self._victims())
        return None

    def _victims(self) -> frozenset[str]:
        """UIDs of the pods that were preempted and have not ended."""
        return frozenset(state.uid for state in self._pod_table if state.parts.preemption.is_victim)

    def _preempt(self, pod: Pod, victims: set[str], found: Verdict, now: Instant) -> None:
        kill = PodKill(failure=PREEMPTED, event=event_reasons.PREEMPTING)
        for uid in sorted(victims):
            _count_preemption(found.shortages[0].resource)
            if (state := self._pod_table.get(uid)) is not None:
                self._gives_way(state, is_victim=True)
                self._kills.kill(state, kill, now, functools.partial(self._has_ended, uid))
        self._reporter.log("info", f"preempting {len(victims)} pods for {'/'.join(pod_key(pod))}")

    def evicted_before(self, state: PodRecord, pod: Pod, why: PodFailure, now: Instant) -> None:
        """End a pod that an agent before this one has evicted or preempted. It takes no place from others, but whoever
        gets its room waits for its end: something of it may run still."""
        self._usage.put(pod)
        self._gives_way(state, is_victim=True)
        kill = PodKill(failure=why, grace_period_s=RESTORED_GRACE_PERIOD_S, tells_delay=False)
        self._kills.kill(state, kill, now, functools.partial(self._has_ended, state.uid))

    def _has_ended(self, victim: str, _in_time: bool, _now: Instant) -> None:
        """One that takes too long is not waited for, as upstream."""
        if (state := self._pod_table.get(victim)) is not None:
            self._gives_way(state, is_victim=False)
        for waiting in self._pod_table:
            preemption = waiting.parts.preemption
            if victim in preemption.victims:
                left = preemption.victims - {victim}
                waiting.parts.preemption = msgspec.structs.replace(preemption, victims=left)
                if not left:
                    self._pod_table.touch((waiting.uid,))

    def _gives_way(self, state: PodRecord, *, is_victim: bool) -> None:
        state.parts.preemption = msgspec.structs.replace(state.parts.preemption, is_victim=is_victim)

    def _may_give_way(self, state: PodRecord) -> bool:
        return (
            state.lifecycle.active
            and not self._statuses.is_rejected(state.uid)
            and not self._kills.is_awaited(state.uid)
        )


def _last_to_stay(pod: Pod) -> tuple[int, float, str]:
    """Sort key of pods that serve alike: the last one has the least priority, and is the youngest."""
    return -pod_priority(pod), created_at(pod), pod.metadata.uid


def _count_preemption(resource: str) -> None:
    known = resource if resource in metrics.PREEMPTION_SIGNALS else "other"
    METERS.counter(metrics.PREEMPTIONS, known).inc()


def _unexpected(pod: Pod, error: Exception) -> Rejected:
    note_failure(f"admission of pod {'/'.join(pod_key(pod))}", error)
    return Rejected(UNEXPECTED_ADMISSION_ERROR, f"unexpected {type(error).__name__}")
