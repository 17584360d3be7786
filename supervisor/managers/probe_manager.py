"""Workers that probe pods, and the results of the probes (pkg/kubelet/prober/prober_manager.go). Without I/O.

The worker that owns a pod probes it, from before its first sync until nothing of it runs or its phase is terminal
(pkg/kubelet/kubelet.go: AddPod in SyncPod, StopLivenessAndStartup in SyncTerminatingPod, RemovePod after it). When it
moves to another worker, the old one confirms that it has stopped before the new one begins. The results are kept here
(pkg/kubelet/prober/results/results_manager.go): they outlive the worker that has found them, and go with their
containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResult, ProbeResults, ProbeType, probes_of
from ipc.link.messages.pod_worker import ContainersChanged, ProbePod, ProbeResultChanged, StopProbing, WorkType
from supervisor.pods.parts import NO_RESULTS, NOT_PROBED, CacheEntry, KnownPods, Probing
from supervisor.pods.record import PodRecord
from supervisor.protocol.commands import Send

Results = Mapping[str, ProbeResults]
Sends = tuple[Send, ...]


class ProbeManager:
    """Owns which worker probes each pod, and the results of the probes."""

    def __init__(self, known: KnownPods) -> None:
        self._known = known
        self._restored: dict[str, ProbeResults] = {}
        """Results that an earlier agent has kept, by container id, until their containers are found."""

    # --- results -------------------------------------------------------------------------------------------------

    def results(self, uid: str) -> Results:
        """Results of the probes of that pod, by container id."""
        return self._known.find(uid).probe_results

    def all_results(self) -> dict[str, ProbeResults]:
        """Results of all probes, by container id, with the restored ones that belong to no pod yet: while Podman does
        not answer they are all that is known."""
        found = {id: said for _, parts in self._known.items() for id, said in parts.probe_results.items()}
        return {**self._restored, **found}

    def restore(self, probe_results: Results) -> None:
        """Results that an earlier agent has kept."""
        self._restored = dict(probe_results)

    def relisted(self, views: Iterable[RuntimePodStatus]) -> None:
        """A relist has shown all containers that exist: restored results of others are dropped."""
        if self._restored:
            there = {container.id for view in views for container in view.containers}
            self._restored = {id: said for id, said in self._restored.items() if id in there}

    def recall(self, state: PodRecord, view: RuntimePodStatus) -> None:
        """Note what is known of the pod's containers, and forget those that are gone."""
        there = {container.id for container in view.containers}
        known = {id: self._restored.pop(id) for id in there & self._restored.keys()} if self._restored else {}
        before = state.parts.probe_results
        state.parts.probe_results = retain_probe_results({**known, **before}, state.pod, view) or NO_RESULTS

    def note_result(self, state: PodRecord, changed: ProbeResultChanged) -> bool:
        """Note a result; whether it is news. One of a probe that the manifest has no more is none."""
        found = find_container(state.pod.spec, changed.name) if state.pod is not None else None
        results = state.parts.probe_results
        known = results.get(changed.container_id, NO_PROBE_RESULTS)
        if (
            found is None
            or changed.probe not in probes_of(found.container)
            or known.of(changed.probe) is changed.result
        ):
            return False
        state.parts.probe_results = {**results, changed.container_id: known.changed(changed.probe, changed.result)}
        return True

    # --- probers -------------------------------------------------------------------------------------------------

    def concerns(self, state: PodRecord) -> bool:
        """Whether the pod is to be probed, or is by now: for every other one `reconcile` has no message."""
        return state.is_probed or state.parts.probing is not NOT_PROBED

    def reconcile(
        self,
        state: PodRecord,
        entry: CacheEntry | None,
        is_up: Callable[[int], bool],
        *,
        has_ended: bool,
        is_left_alone: bool = False,
    ) -> Sends:
        """The messages that are needed so that the pod is probed as it is now; none for most. ``entry``: its newest
        view. A pod that is left alone is not probed for now; the results of its probes go on to count."""
        wanted = None if has_ended or is_left_alone else _wanted(state, entry)
        probing = state.parts.probing
        stop: Sends = ()
        if probing is NOT_PROBED and wanted is None:
            return ()
        if wanted is None or probing.worker not in (None, state.slot):
            probing, stop = _left(state.uid, probing)
        if wanted is None or probing.leaving is not None or not is_up(state.slot):
            state.parts.probing = probing
            return stop
        state.parts.probing, orders = _probed(
            probing, state.slot, wanted, _running(entry), dict(state.parts.probe_results)
        )
        return orders

    def stopped(self, uid: str) -> None:
        """The pod's old worker has stopped to probe it."""
        if self._known.find(uid).probing is not NOT_PROBED:
            parts = self._known.of(uid)
            parts.probing = msgspec.structs.replace(parts.probing, leaving=None)

    def down(self, slot: int) -> list[str]:
        """Forget a worker that died; UIDs of the pods whose next worker has waited for that."""
        waited = []
        for uid, parts in self._known.items():
            probing = parts.probing
            if probing.leaving == slot:
                waited.append(uid)
            if slot in (probing.worker, probing.leaving):
                parts.probing = _without(probing, slot)
        return waited

    def leave(self, state: PodRecord) -> Sends:
        """Nothing is left of the pod; the message that ends its probes."""
        return _left(state.uid, state.parts.probing)[1]


def _probed(
    before: Probing, slot: int, wanted: ProbePod, running: tuple[str, ...], results: dict[str, ProbeResults]
) -> tuple[Probing, Sends]:
    """The worker in that slot probes the pod as ``wanted`` from now on; with the message that takes."""
    if before.sent != wanted:
        return (
            msgspec.structs.replace(before, worker=slot, sent=wanted, running=running),
            (Send(slot, msgspec.structs.replace(wanted, probe_results=results)),),
        )
    if before.running != running:
        changed = Send(slot, ContainersChanged(uid=wanted.uid, probe_results=results))
        return msgspec.structs.replace(before, running=running), (changed,)
    return before, ()


def _left(uid: str, before: Probing) -> tuple[Probing, Sends]:
    """Its worker probes the pod no more; with the message that takes."""
    if before.worker is None:
        return before, ()
    after = msgspec.structs.replace(before, worker=None, sent=None, leaving=before.worker)
    return after, (Send(before.worker, StopProbing(uid=uid)),)


def _without(before: Probing, slot: int) -> Probing:
    """That worker is gone."""
    if before.worker == slot:
        before = msgspec.structs.replace(before, worker=None, sent=None)
    return msgspec.structs.replace(before, leaving=None) if before.leaving == slot else before


def needs_sync(changed: ProbeResultChanged) -> bool:
    """Whether a worker has something to do because of it: a container to kill, or the next one to start.

    Upstream syncs a pod whose readiness has changed too, for the sake of its status (kubelet.go, handleProbeSync).
    """
    if changed.probe is ProbeType.STARTUP:
        return changed.result is not ProbeResult.UNKNOWN
    return changed.probe is ProbeType.LIVENESS and changed.result is ProbeResult.FAILURE


def retain_probe_results(probe_results: Results, pod: Pod | None, view: RuntimePodStatus) -> Results:
    """Results of containers that are there, by probes that the manifest has."""
    kept = {}
    for container in view.containers if pod is not None and probe_results else ():
        found = find_container(pod.spec, container.name) if pod is not None else None
        if found is not None and container.id in probe_results:
            kept[container.id] = _of_probes(probe_results[container.id], probes_of(found.container))
    return probe_results if kept == probe_results else kept


def _of_probes(probe_results: ProbeResults, probes: Iterable[ProbeType]) -> ProbeResults:
    return ProbeResults(**{probe.value: probe_results.of(probe) for probe in probes})


def _wanted(state: PodRecord, entry: CacheEntry | None) -> ProbePod | None:
    """The order that its worker should have; None when nothing of the pod is to be probed."""
    pod, phase = state.pod, state.lifecycle.phase
    if phase is WorkType.TERMINATED or pod is None or not state.is_probed:
        return None
    inline = entry is not None and entry.row < 0
    status = msgspec.structs.replace(entry.status, observed_at=0.0) if entry is not None and inline else None
    return ProbePod(
        uid=state.uid,
        pod=pod,
        row=-1 if inline else state.row,
        status=status,
        terminating=phase is not WorkType.SYNC,
    )


def _running(entry: CacheEntry | None) -> tuple[str, ...]:
    containers = entry.status.containers if entry is not None else ()
    return tuple(container.id for container in containers if container.state is ContainerState.RUNNING)
