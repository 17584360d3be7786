"""Resizes of pods that run: tried when something changes and every few minutes, begun, and found to be done.

Mirrors retryPendingResizes and handlePodResourcesResize (pkg/kubelet/allocation/allocation_manager.go), and of
pkg/kubelet/kubelet.go and kubelet_pods.go what sets the condition PodResizeInProgress.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import msgspec

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.resize import is_resize_in_progress
from ipc.k8s.podresources.allocation import RESIZABLE, allocation_from_pod
from ipc.k8s.podresources.pod_requests import amount
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.pod_worker import SyncAction, SyncDone, SyncResult
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resize import DEFERRED, INFEASIBLE, PendingResize, resize_problem, restarts_for_resize
from supervisor.admission.resource_fit import unenforced
from supervisor.managers.allocation import ERROR, IN_PROGRESS, PENDING, AllocationManager, PendingPod
from supervisor.podcontrol.active_pods import ActivePods
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.removals import PodRemovals
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.cache import PodCache
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.record.resize_texts import resize_message

INITIAL_RETRY_S: Final = 30.0
"""allocation_manager.go, initialRetryDelay."""
RETRY_S: Final = 180.0
"""allocation_manager.go, retryDelay."""
_PENDING_EVENTS: Final = {
    DEFERRED: event_reasons.RESIZE_DEFERRED,
    INFEASIBLE: event_reasons.RESIZE_INFEASIBLE,
}


class Resizes(msgspec.Struct, eq=False):
    """Tries pending resizes. Owns when that is next."""

    _node: ThisNode
    _pod_table: PodTable
    _cache: PodCache
    _allocations: AllocationManager
    _usage: NodeUsage
    _active_pods: ActivePods
    _removals: PodRemovals
    _tracking: PodTracking
    _reporter: PodReporter
    _retry_at: float = math.inf
    """Monotonic seconds."""
    _was_woken: bool = False
    """The last tries were made because of a change, not of the time."""

    def wake(self) -> None:
        """Something has changed that may make room for a resize, or ask for one."""
        self._retry_at = 0.0

    def stated(self, state: PodRecord, pod: Pod) -> None:
        """The pod is tracked with the resources that it was allocated; its source states these."""
        self._allocations.drop_pending(state.uid)
        if pod is state.pod:
            self._allocations.clear_condition(state.uid, PENDING)
            return
        if state.pod is not None:
            _count_requests(state.pod, pod)
        state.state(pod)
        self._allocations.push_pending(state.uid, self._pending_pod)
        self.wake()

    def _pending_pod(self, uid: str) -> PendingPod | None:
        state = self._pod_table.get(uid)
        if state is None or state.pod is None or state.stated is None:
            return None
        condition = self._allocations.condition(uid, PENDING)
        since = condition.last_transition_time if condition is not None else None
        return PendingPod(before=state.pod, after=state.stated, since=since or "")

    # --- tries ---------------------------------------------------------------------------------------------------

    def retry_due(self, now: Instant) -> None:
        """Try every pending resize if it is time to. Nothing is tried before every source was read."""
        if now.mono < self._retry_at or not self._allocations.pending:
            return
        if not self._removals.are_sources_ready:
            self._retry_at = now.mono + INITIAL_RETRY_S
            return
        self._was_woken = not self._retry_at
        self._retry_at = now.mono + RETRY_S
        for uid in self._allocations.pending:
            state = self._pod_table.get(uid)
            if state is None or state.stated is None or not state.lifecycle.active:
                self._allocations.drop_pending(uid)
            else:
                self._try(state, state.stated, now)

    def _try(self, state: PodRecord, pod: Pod, now: Instant) -> None:
        problem = resize_problem(state.pod or pod, pod, self._active_pods.beside(pod), self._node.view.resources)
        if problem is None:
            self._begin(state, pod, now)
        else:
            self._put_off(state, pod, problem, now)

    def _begin(self, state: PodRecord, pod: Pod, now: Instant) -> None:
        """The pod has what it asks for; its next sync gives it to its containers."""
        allocations, before, node = self._allocations, state.pod, self._node.view.resources
        assert before is not None
        if allocations.condition(state.uid, PENDING) is not None:
            trigger = "pod_updated" if self._was_woken else "periodic_retry"
            METERS.counter(metrics.DEFERRED_ACCEPTED_RESIZES, trigger).inc()
        self._tracking.replace(state, pod)
        self._usage.put(pod)
        allocations.drop_pending(state.uid)
        allocations.allocate(pod)
        allocations.clear_condition(state.uid, PENDING)
        allocations.clear_condition(state.uid, IN_PROGRESS)
        self._set(state, pod, IN_PROGRESS, "", "", now)
        self._event(state, event_reasons.RESIZE_STARTED, resize_message("started", pod, _generation(pod)), now)
        for warning in restarts_for_resize(before, pod, node):
            self._event(state, event_reasons.RESIZE_BY_RESTART, warning, now)
        for warning in sorted(set(unenforced(pod, node)).difference(unenforced(before, node))):
            self._event(state, event_reasons.UNSUPPORTED_FIELD, warning, now)
        self._reporter.report(state, now)

    def _put_off(self, state: PodRecord, pod: Pod, problem: PendingResize, now: Instant) -> None:
        """One that can never be done waits for the next edit."""
        if problem.reason == INFEASIBLE:
            self._allocations.drop_pending(state.uid)
        if self._set(state, pod, PENDING, problem.reason, problem.message, now):
            text = resize_message(problem.shortage or problem.reason, pod, _generation(pod), problem.message)
            self._event(state, _PENDING_EVENTS[problem.reason], text, now)
            if problem.reason == INFEASIBLE:
                METERS.counter(metrics.INFEASIBLE_RESIZES, problem.detail).inc()
            self._reporter.report(state, now)

    # --- what comes of them --------------------------------------------------------------------------------------

    def sync_ended(self, state: PodRecord, done: SyncDone, now: Instant) -> None:
        """Note the resources that a worker has given to containers, and the result of its resize."""
        allocations, uid = self._allocations, state.uid
        allocations.actuate(uid, done.actuated)
        if done.effects.unsure:
            allocations.mark_stale(uid)
        elif not done.error and not done.cancelled:
            allocations.mark_fresh(uid)
        result = next((result for result in done.results if result.action is SyncAction.RESIZE_POD), None)
        if result is not None and state.pod is not None:
            self._resized(state, state.pod, result, now)
        self._settle(state, now)

    def _resized(self, state: PodRecord, pod: Pod, result: SyncResult, now: Instant) -> None:
        """The condition has the error of the last try, or none."""
        condition = self._allocations.condition(state.uid, IN_PROGRESS)
        if condition is None and not result.error:
            return
        generation = condition.observed_generation if condition is not None else _generation(pod)
        reason, at = ERROR if result.error else "", rfc3339(now.wall)
        is_news = self._allocations.set_condition(state.uid, IN_PROGRESS, reason, result.message, generation, at)
        if is_news and result.error:
            text = resize_message("error", pod, generation, result.message)
            self._event(state, event_reasons.RESIZE_ERROR, text, now)

    def _settle(self, state: PodRecord, now: Instant) -> None:
        """End a resize of which nothing is left to do. Only between two syncs: within one a container that restarts is
        not there for a moment."""
        condition, pod = self._allocations.condition(state.uid, IN_PROGRESS), state.pod
        if condition is None or pod is None:
            return
        if is_resize_in_progress(pod, self._cache.get(state.uid), self._allocations.actuated(state.uid)):
            return
        self._allocations.clear_condition(state.uid, IN_PROGRESS)
        text = resize_message("completed", pod, condition.observed_generation)
        self._event(state, event_reasons.RESIZE_COMPLETED, text, now)

    def _set(self, state: PodRecord, pod: Pod, type: str, reason: str, message: str, now: Instant) -> bool:
        return self._allocations.set_condition(state.uid, type, reason, message, _generation(pod), rfc3339(now.wall))

    def _event(self, state: PodRecord, reason: EventReason, message: str, now: Instant) -> None:
        self._reporter.pod_event(state, reason, message, now)


def _count_requests(before: Pod, after: Pod) -> None:
    known = allocation_from_pod(before).container_resources
    for name, wanted in allocation_from_pod(after).container_resources.items():
        old = known.get(name, wanted)
        pairs = {"limits": (old.limits, wanted.limits), "requests": (old.requests, wanted.requests)}
        for requirement, resource in itertools.product(pairs, RESIZABLE):
            if operation := _operation(resource, *pairs[requirement]):
                METERS.counter(metrics.REQUESTED_RESIZES, resource, requirement, operation).inc()


def _operation(resource: str, old: ResourceList, new: ResourceList) -> str:
    """Empty when nothing changes."""
    if (resource in old) != (resource in new):
        return "add" if resource in new else "remove"
    growth = amount(new, resource) - amount(old, resource)
    return "increase" if growth > 0 else "decrease" if growth else ""


def _generation(pod: Pod) -> int:
    return pod.metadata.generation
