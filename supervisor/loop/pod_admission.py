"""Admission of pods beside those that are there, and the pods that a critical one pushes out (AddPod,
pkg/kubelet/allocation/allocation_manager.go; pkg/kubelet/preemption).

Upstream blocks until the preempted pods have ended; here the pod that has got their room is admitted at once and not
synced before that. Whoever is admitted meanwhile counts on their room, too, and waits like it.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet
from typing import Final

from ipc.api.v1.pod import Pod
from ipc.eventloop.tasks import note_failure
from ipc.host.clock import Instant
from ipc.kubecontainer.pod_failure import PodFailure
from ipc.messages import event_reasons
from ipc.metrics import kubelet as metrics
from ipc.scheduling.priority import is_critical, pod_priority
from ipc.shm.metric_cells import METERS
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
from supervisor.loop.node_shutdown import NOT_ADMITTED, NodeShutdown
from supervisor.loop.parts import LoopParts
from supervisor.loop.pod_kills import PodKill
from supervisor.pods.record import PodRecord
from supervisor.protocol.manifests import created_at, pod_key

PREEMPTED: Final = PodFailure(
    reason=event_reasons.PREEMPTING.reason,
    message="Preempted in order to admit critical pod",
    disruption="Pod was preempted by Kubelet to accommodate a critical pod.",
)

RESTORED_GRACE_PERIOD_S: Final = 1
"""Grace period of a pod that an agent before has evicted: it has had its time."""


class PodAdmission:
    """Decides on pods, ends those that give way, and knows who waits for their end."""

    def __init__(self, parts: LoopParts, shutdown: NodeShutdown) -> None:
        self._parts = parts
        self._shutdown = shutdown
        self._victims: set[str] = set()
        """UIDs of pods that were preempted and have not ended."""
        self._waiting: dict[str, set[str]] = {}
        """UID to those of the victims that the pod waits for."""

    def is_waiting(self, uid: str) -> bool:
        """Whether the room that the pod was admitted to is not free yet, or it may have to end with the node."""
        return uid in self._waiting or self._shutdown.holds(uid)

    def admit(self, pod: Pod) -> Rejected | None:
        """Admission of an edit; None: it is admitted. Nobody gives way to it. Beside every pod of which something is
        left; if that rejects it, beside those that stay up. To find these every time would be work that grows with the
        square of their number."""
        parts = self._parts
        try:
            if problem := parts.devices.problem(pod, self._inactive):
                return Rejected(UNEXPECTED_ADMISSION_ERROR, problem)
            if (
                rejection(
                    pod, parts.usage.without({pod.metadata.uid}), parts.node.view.settings, parts.node.view.resources
                )
                is None
            ):
                return None
            return rejection(pod, self.staying(pod), parts.node.view.settings, parts.node.view.resources)
        except Exception as error:
            return _unexpected(pod, error)

    def warnings(self, pod: Pod) -> tuple[str, ...]:
        """Fields of an admitted pod that are not acted on."""
        try:
            return admitted(pod, self._parts.node.view.resources).warnings
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
        is_running = self._parts.cache.get(pod.metadata.uid).is_running()
        if not is_running and (problem := pressure_problem(pod, self._parts.node.view.pressures)):
            return Rejected(*problem)
        rejected = self.admit(pod)
        if rejected is None or not (self._victims or is_critical(pod)):
            return rejected
        try:
            return self._admit_in_freed_room(pod, now)
        except Exception as error:
            return _unexpected(pod, error)

    def begins_after_all(self, uid: str, now: Instant) -> None:
        """A pod that came while an interrupted shutdown was looked into, which is called off now: nobody has asked then
        whether the node is short of something."""
        state = self._parts.pod_table.get(uid)
        if state is None or state.pod is None or not state.lifecycle.active or self._parts.statuses.is_rejected(uid):
            return
        is_running = self._parts.cache.get(uid).is_running()
        if not is_running and (problem := pressure_problem(state.pod, self._parts.node.view.pressures)):
            self._parts.kills.reject(state, Rejected(*problem), now)
            self._parts.announcer.report(state, now)

    def _admit_in_freed_room(self, pod: Pod, now: Instant) -> Rejected | None:
        """Beside those that stay up, without the ones that were preempted already; if that is not enough and the pod is
        critical, after others were preempted, too."""
        parts = self._parts
        if problem := parts.devices.problem(pod, self._inactive):  # for want of a device nobody gives way
            return Rejected(UNEXPECTED_ADMISSION_ERROR, problem)
        found = verdict(pod, self.staying(pod, self._victims), parts.node.view.settings, parts.node.view.resources)
        if found.rejections or found.shortages:
            active = (state.pod for state in parts.pod_table if state.pod and self._may_give_way(state))
            victims = recover(pod, found.rejections, found.shortages, sorted(active, key=_last_to_stay))
            if isinstance(victims, Rejected):
                return victims
            self._preempt(pod, {victim.metadata.uid for victim in victims}, found, now)
        self._waiting[pod.metadata.uid] = set(self._victims)
        return None

    def _preempt(self, pod: Pod, victims: set[str], found: Verdict, now: Instant) -> None:
        kill = PodKill(failure=PREEMPTED, event=event_reasons.PREEMPTING)
        self._victims |= victims
        for uid in sorted(victims):
            _count_preemption(found.shortages[0].resource)
            if (state := self._parts.pod_table.get(uid)) is not None:
                self._parts.kills.kill(state, kill, now, functools.partial(self._has_ended, uid))
        self._parts.announcer.log("info", f"preempting {len(victims)} pods for {'/'.join(pod_key(pod))}")

    def evicted_before(self, state: PodRecord, pod: Pod, why: PodFailure, now: Instant) -> None:
        """End a pod that an agent before this one has evicted or preempted. It takes no place from others, but whoever
        gets its room waits for its end: something of it may run still."""
        self._parts.usage.put(pod)
        self._victims.add(state.uid)
        kill = PodKill(failure=why, grace_period_s=RESTORED_GRACE_PERIOD_S, tells_delay=False)
        self._parts.kills.kill(state, kill, now, functools.partial(self._has_ended, state.uid))

    def _has_ended(self, victim: str, _in_time: bool, _now: Instant) -> None:
        """One that takes too long is not waited for, as upstream."""
        self._victims.discard(victim)
        for uid, victims in list(self._waiting.items()):
            victims.discard(victim)
            if not victims:
                del self._waiting[uid]
                self._parts.pod_table.touch((uid,))

    def staying(self, pod: Pod, gone: AbstractSet[str] = frozenset()) -> NodeUsage:
        """Usage of the other pods that count against maxPods, host ports and resources (filterOutInactivePods)."""
        return self._parts.usage.without({pod.metadata.uid} | self._inactive() | gone)

    def _inactive(self) -> set[str]:
        """UIDs of pods that do not count."""
        is_rejected = self._parts.statuses.is_rejected
        return {state.uid for state in self._parts.pod_table if not state.lifecycle.active or is_rejected(state.uid)}

    def _may_give_way(self, state: PodRecord) -> bool:
        return (
            state.lifecycle.active
            and not self._parts.statuses.is_rejected(state.uid)
            and not self._parts.kills.is_awaited(state.uid)
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
