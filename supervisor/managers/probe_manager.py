"""Which worker probes which pod, and what their probes have said. Without I/O.

The worker that owns a pod probes it, from before its first sync until nothing of it runs or its phase is terminal
(pkg/kubelet/kubelet.go: AddPod in SyncPod, StopLivenessAndStartup in SyncTerminatingPod, RemovePod after it). When it
moves to another worker, the old one says that it has stopped before the new one is told. The verdicts are the pod's
(``PodLifecycle.verdicts``): they outlive the worker that has found them, and go with their containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_containers import find_container
from ipc.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResult, ProbeResults, ProbeType, probes_of
from ipc.messages.pod_worker import ContainersChanged, ProbePod, ProbeResultChanged, StopProbing, WorkType
from supervisor.podworkers.pod_cache import CacheEntry
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.protocol.loop_protocol import Send
from supervisor.status.phase import TERMINAL_PHASES


class _Prober:
    """Who probes one pod."""

    def __init__(self) -> None:
        self.slot: int | None = None
        self.told: ProbePod | None = None
        """What it was told, without verdicts."""
        self.running: tuple[str, ...] = ()
        """Ids of the containers that ran when it was told last."""
        self.leaving: int | None = None
        """The slot that was told to stop and has not said that it has."""


class ProbeManager:
    """The probers of all pods that have probes."""

    def __init__(self) -> None:
        self._probers: dict[str, _Prober] = {}
        self._restored: dict[str, ProbeResults] = {}
        """What an earlier life of the agent knew, by container id, until its containers are found."""

    def restore(self, probe_results: Mapping[str, ProbeResults]) -> None:
        self._restored = dict(probe_results)

    @property
    def unclaimed(self) -> Mapping[str, ProbeResults]:
        """What was restored and belongs to no pod yet: while Podman does not answer it is all that is known."""
        return self._restored

    def relisted(self, views: Iterable[RuntimePodStatus]) -> None:
        """These are all that exist: what was restored of other containers is of no use any more."""
        if self._restored:
            there = {container.id for view in views for container in view.containers}
            self._restored = {id: said for id, said in self._restored.items() if id in there}

    def recall(self, lifecycle: PodLifecycle, view: RuntimePodStatus) -> None:
        """Note what is known of the pod's containers, and forget those that are gone."""
        there = {container.id for container in view.containers}
        known = {id: self._restored.pop(id) for id in there & self._restored.keys()} if self._restored else {}
        lifecycle.probe_results = retain_probe_results({**known, **lifecycle.probe_results}, lifecycle.pod, view)

    def tell(
        self,
        lifecycle: PodLifecycle,
        entry: CacheEntry | None,
        is_up: Callable[[int], bool],
        *,
        is_left_alone: bool = False,
    ) -> tuple[Send, ...]:
        """What has to be said so that the pod is probed as it is now; nothing for most. ``entry``: its newest view.
        One that is left alone is not probed for now; what its probes have said goes on to count."""
        wanted = None if is_left_alone else _wanted(lifecycle, entry)
        prober = self._probers.get(lifecycle.uid)
        if prober is None:
            if wanted is None:
                return ()
            prober = self._probers[lifecycle.uid] = _Prober()
        stop = _leave(lifecycle.uid, prober) if wanted is None or prober.slot not in (None, lifecycle.slot) else ()
        if wanted is None or prober.leaving is not None or not is_up(lifecycle.slot):
            return stop
        return _go_on(lifecycle, prober, wanted, _running(entry))

    def stopped(self, uid: str) -> None:
        """Its old worker probes it no more."""
        if uid in self._probers:
            self._probers[uid].leaving = None

    def down(self, slot: int) -> list[str]:
        """That worker is gone; the pods for which another one has waited for that."""
        waited = []
        for uid, prober in self._probers.items():
            if prober.slot == slot:
                prober.slot, prober.told = None, None
            if prober.leaving == slot:
                prober.leaving = None
                waited.append(uid)
        return waited

    def forget(self, uid: str) -> tuple[Send, ...]:
        """Nothing of the pod is left."""
        prober = self._probers.pop(uid, None)
        return _leave(uid, prober) if prober is not None else ()


def take_probe_result(lifecycle: PodLifecycle, verdict: ProbeResultChanged) -> bool:
    """Note it; whether it is news. One of a probe that the manifest has no more is none."""
    found = find_container(lifecycle.pod.spec, verdict.name) if lifecycle.pod is not None else None
    known = lifecycle.probe_results.get(verdict.container_id, NO_PROBE_RESULTS)
    if found is None or verdict.probe not in probes_of(found.container) or known.of(verdict.probe) is verdict.result:
        return False
    lifecycle.probe_results = {
        **lifecycle.probe_results,
        verdict.container_id: known.changed(verdict.probe, verdict.result),
    }
    return True


def needs_sync(verdict: ProbeResultChanged) -> bool:
    """Whether a worker has something to do because of it: a container to kill, or the next one to start.

    Upstream syncs a pod whose readiness has changed too, for the sake of its status (kubelet.go, handleProbeSync).
    """
    if verdict.probe is ProbeType.STARTUP:
        return verdict.result is not ProbeResult.UNKNOWN
    return verdict.probe is ProbeType.LIVENESS and verdict.result is ProbeResult.FAILURE


def retain_probe_results(
    probe_results: Mapping[str, ProbeResults], pod: Pod | None, view: RuntimePodStatus
) -> Mapping[str, ProbeResults]:
    """Those of containers that are there, by probes that the manifest has."""
    kept = {}
    for container in view.containers if pod is not None and probe_results else ():
        found = find_container(pod.spec, container.name) if pod is not None else None
        if found is not None and container.id in probe_results:
            kept[container.id] = _of_probes(probe_results[container.id], probes_of(found.container))
    return probe_results if kept == probe_results else kept


def _of_probes(probe_results: ProbeResults, probes: Iterable[ProbeType]) -> ProbeResults:
    return ProbeResults(**{probe.value: probe_results.of(probe) for probe in probes})


def _has_probes(pod: Pod) -> bool:
    return any(probes_of(container) for container in (*pod.spec.containers, *pod.spec.init_containers))


def _wanted(lifecycle: PodLifecycle, entry: CacheEntry | None) -> ProbePod | None:
    """What its worker should be told; None when nothing of it is to be probed."""
    pod, ended = lifecycle.pod, lifecycle.phase is WorkType.TERMINATED or lifecycle.rejection is not None
    if ended or pod is None or not _has_probes(pod):
        return None
    if lifecycle.status is not None and lifecycle.status.phase in TERMINAL_PHASES:
        return None
    inline = entry is not None and entry.row < 0
    status = msgspec.structs.replace(entry.status, observed_at=0.0) if entry is not None and inline else None
    return ProbePod(
        uid=lifecycle.uid,
        pod=pod,
        row=-1 if inline else lifecycle.row,
        status=status,
        terminating=lifecycle.phase is not WorkType.SYNC,
    )


def _running(entry: CacheEntry | None) -> tuple[str, ...]:
    containers = entry.status.containers if entry is not None else ()
    return tuple(container.id for container in containers if container.state is ContainerState.RUNNING)


def _go_on(lifecycle: PodLifecycle, prober: _Prober, wanted: ProbePod, running: tuple[str, ...]) -> tuple[Send, ...]:
    before, prober.running = prober.running, running
    probe_results = dict(lifecycle.probe_results)
    if prober.told != wanted:
        prober.slot, prober.told = lifecycle.slot, wanted
        return (Send(lifecycle.slot, msgspec.structs.replace(wanted, probe_results=probe_results)),)
    if running != before:
        return (Send(lifecycle.slot, ContainersChanged(uid=lifecycle.uid, probe_results=probe_results)),)
    return ()


def _leave(uid: str, prober: _Prober) -> tuple[Send, ...]:
    if prober.slot is None:
        return ()
    prober.leaving, prober.slot, prober.told = prober.slot, None, None
    return (Send(prober.leaving, StopProbing(uid=uid)),)
