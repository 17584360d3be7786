"""Counts what goes into the sync loop and what comes out of it (`ipc.link.metrics`). The loop itself counts nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipc.host.clock import Instant
from ipc.k8s.api.pod_containers import container_type
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.messages.base import PullEnded
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.pod_worker import AbandonPull, PullImage, SyncDone, SyncPod, WorkType
from ipc.link.metrics import kubelet, rootlet
from ipc.link.metrics.reasons import CANCELLED, INTERNAL, OTHER, SYNC_ERRORS
from ipc.link.shm.metric_cells import METERS
from supervisor.protocol.events import LoopEvent, Observations, PullRequest
from supervisor.protocol.source_updates import PodOperation, PodUpdate

CREATE, UPDATE, SYNC, KILL, TERMINATED = kubelet.POD_WORKER_OPERATIONS
_OF_PHASE: Final = {WorkType.TERMINATING: KILL, WorkType.TERMINATED: TERMINATED}
_DURATIONS: Final = {
    operation: METERS.histogram(kubelet.POD_WORKER_DURATION, operation) for operation in kubelet.POD_WORKER_OPERATIONS
}
_SYNCS: Final = {error: METERS.counter(rootlet.SYNCS, error) for error in SYNC_ERRORS}
_UNEXPECTED: Final = _SYNCS[INTERNAL]
_START: Final = METERS.histogram(kubelet.POD_START_DURATION)
_START_TOTAL: Final = METERS.histogram(kubelet.POD_START_TOTAL_DURATION)
_START_SLI: Final = METERS.histogram(kubelet.POD_START_SLI_DURATION)
_WORKER_START: Final = METERS.histogram(kubelet.POD_WORKER_START_DURATION)
_CONTAINERS: Final = METERS.histogram(kubelet.CONTAINERS_PER_POD)
_EVENT: Final = METERS.histogram(rootlet.SYNC_LOOP_DURATION)
_KNOWN_ENDS: Final = frozenset(kubelet.ENDS)
_OTHER_END: Final = (OTHER, OTHER)

_STATELESS_VOLUMES: Final = ("secret", "config_map", "downward_api", "empty_dir", "projected")

Interval = tuple[float, float]
"""Wall times."""


class _Pod:
    """Record of a pod: times of its start and of its sync under way, and ends of containers that were counted."""

    def __init__(self, pod: Pod, now: Instant) -> None:
        self.pod = pod
        self.seen = now
        self.operation = CREATE
        """The kind of its next sync."""
        self.flight: tuple[int, str, float] | None = None
        """Generation, operation and monotonic time of the sync under way."""
        self.was_dispatched = False
        self.is_running = False
        self.has_started = False
        self.pulls: dict[str, float] = {}
        """Wall time since which it waits for an image, by the image's reference."""
        self.pulled: list[Interval] = []
        self.ended: set[str] = set()
        """Ids of containers whose end was counted, or that had ended before the pod was seen."""


class LoopMeter:
    """Remembers of each pod what the durations of its start and its syncs need."""

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}

    @property
    def pods(self) -> int:
        """Number of pods that are remembered."""
        return len(self._pods)

    def took(self, event: LoopEvent, now: Instant) -> None:
        """The event is to be handled."""
        match event:
            case PodUpdate(op=op, pods=pods):
                for pod in pods:
                    self._updated(op, pod, now)
            case Observations(observations=observations):
                for observation in observations:
                    if observation.status is not None and (known := self._pods.get(observation.uid)) is not None:
                        _observed(known, observation.status, now)
            case SyncDone():
                self._done(event, now)
            case PullRequest(request=PullImage(uid=uid, reference=reference)):
                if (known := self._pods.get(uid)) is not None and not known.has_started:
                    known.pulls.setdefault(reference, now.wall)
            case PullRequest(request=AbandonPull(uid=uid, reference=reference)):
                if (known := self._pods.get(uid)) is not None:
                    _pulled(known, reference, now)
            case PullEnded(reference=reference):
                for known in self._pods.values():
                    _pulled(known, reference, now)
            case _:
                pass

    def handled(self, began: float, ended: float) -> None:
        """An event was handled, and what follows from it carried out. Monotonic seconds."""
        _EVENT.observe(ended - began)

    def sent(self, message: ChildCommand, now: Instant) -> None:
        """A message goes to a child."""
        if isinstance(message, SyncPod) and (known := self._pods.get(message.uid)) is not None:
            if not known.was_dispatched:
                known.was_dispatched = True
                _WORKER_START.observe(now.mono - known.seen.mono)
            operation = _OF_PHASE.get(message.kind, known.operation)
            known.flight = (message.generation, operation, now.mono)
            known.operation = SYNC

    def _updated(self, op: PodOperation, pod: Pod, now: Instant) -> None:
        known = self._pods.get(pod.metadata.uid)
        if op is PodOperation.REMOVE:
            if known is not None and not known.was_dispatched:
                del self._pods[pod.metadata.uid]  # no sync of it will end
        elif op in (PodOperation.ADD, PodOperation.RESTORE) or known is None:
            self._pods[pod.metadata.uid] = _Pod(pod, now)
            if known is None:
                _CONTAINERS.observe(len(pod.spec.containers))
        elif op is PodOperation.UPDATE:
            known.pod, known.operation = pod, UPDATE

    def _done(self, done: SyncDone, now: Instant) -> None:
        _SYNCS.get(CANCELLED if done.cancelled else done.error, _UNEXPECTED).inc()
        known = self._pods.get(done.uid)
        if known is None or known.flight is None:
            return
        generation, operation, sent_at = known.flight
        if generation == done.generation:
            _DURATIONS[operation].observe(now.mono - sent_at)
            known.flight = None
            if done.kind is WorkType.TERMINATED and not done.error and not done.cancelled:
                del self._pods[done.uid]


def _observed(known: _Pod, status: RuntimePodStatus, now: Instant) -> None:
    for container in status.containers:
        if container.state is ContainerState.EXITED and container.id not in known.ended:
            known.ended.add(container.id)
            if container.finished_at >= known.seen.wall:
                type = container_type(known.pod.spec, container.name)
                METERS.counter(kubelet.TERMINATED_CONTAINERS, type, *end_of(container)).inc()
    known.ended &= {container.id for container in status.containers}
    if not known.has_started:
        _starting(known, status, now)


def _starting(known: _Pod, status: RuntimePodStatus, now: Instant) -> None:
    """Whether the pod runs by now, and whether all its containers have (pod_startup_latency_tracker.go)."""
    newest = [status.newest(container.name) for container in known.pod.spec.containers]
    there = [container for container in newest if container is not None]
    if len(there) < len(newest):
        return
    took_s = now.mono - known.seen.mono
    if any(0.0 < container.started_at < known.seen.wall for container in there):
        known.is_running = known.has_started = True  # it ran before this agent did
    if not known.is_running and any(container.state is ContainerState.RUNNING for container in there):
        known.is_running = True
        _START.observe(took_s)
    if not known.has_started and all(container.started_at > 0.0 for container in there):
        known.has_started = True
        inits = {container.name for container in known.pod.spec.init_containers}
        ran = [(c.started_at, c.finished_at) for c in status.containers if c.name in inits and c.finished_at > 0.0]
        _START_TOTAL.observe(took_s)
        if not is_stateful(known.pod):
            _START_SLI.observe(max(0.0, took_s - merged_s([*known.pulled, *ran])))
        known.pulls, known.pulled = {}, []


def _pulled(known: _Pod, reference: str, now: Instant) -> None:
    if (since := known.pulls.pop(reference, None)) is not None:
        known.pulled.append((since, now.wall))


def is_stateful(pod: Pod) -> bool:
    """Whether the pod has a volume of another kind than its own directories and the API's objects: the start of such a
    pod is no measure of the node (pod_startup_latency_tracker.go, isStatefulPod)."""
    return any(not any(getattr(volume, kind) is not None for kind in _STATELESS_VOLUMES) for volume in pod.spec.volumes)


def merged_s(intervals: Iterable[Interval]) -> float:
    """Time that lies in any of these intervals, in seconds."""
    total, until = 0.0, 0.0
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def end_of(container: RuntimeContainerStatus) -> tuple[str, str]:
    """Exit code and reason of an end, as the table of metrics knows them."""
    by_code = "Error" if container.exit_code else "Completed"
    reason = container.reason or ("OOMKilled" if container.oom_killed else by_code)
    end = (str(container.exit_code), reason)
    return end if end in _KNOWN_ENDS else _OTHER_END
