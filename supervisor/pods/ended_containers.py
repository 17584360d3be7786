"""Starts and ends of the desired pods' containers, remembered even when the containers are removed.

The kubelet has its API server for that: a status that says terminated is kept there (pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses), and of one that said running it is known that it ran. A run is remembered when it is
observed, and forgotten when a worker has removed the container, which it does for a container that is to begin as if it
had never run, and with its pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.k8s.api.pod_containers import ContainerKind, every_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    UNKNOWN_EXIT_CODE,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.remembered_ends import (
    NO_RECORD,
    RememberedPod,
    Runs,
    is_lost,
    is_open,
    lacking,
    with_beginning,
    with_remembered,
)
from ipc.k8s.podobjects.redaction import WITHHELD
from supervisor.pods.parts import KnownPods, PodParts

KEPT: Final = 2
"""Runs of each name: the state and the last state of a status."""
REMOVED_AS_IT_RAN: Final = "The container was removed while it ran"


class EndedContainers:
    """Owns the remembered runs of each pod."""

    def __init__(self, known: KnownPods) -> None:
        self._known = known
        known.on_forget(self._forgotten)
        self._dropped: list[tuple[int, str]] = []
        """Versions and UIDs of pods that were forgotten, until their file lacks them, too."""
        self._inherited: set[str] = set()
        """Ids of containers that ran when an earlier agent saw them last, and that this one has not seen."""
        self._expected: dict[str, float] = {}
        """Containers that were about to start, by id, and when (monotonic seconds): an older view cannot show them."""
        self._alive_at = 0.0
        self.version = 0
        """Rises with every change."""
        self.urgent_version = 0
        """The newest change that nothing else tells: a run that has begun or ended."""

    # --- for those who observe and decide ---

    def merged(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """The observation with what it lacks."""
        record = self._known.find(status.uid).runs
        if record is NO_RECORD:
            return status
        return with_beginning(with_remembered(status, self._ends(status, record)), record.began_at)

    def lacked_by(self, status: RuntimePodStatus) -> Runs:
        """Ends that the observation lacks."""
        return lacking(status, self._ends(status, self._known.find(status.uid).runs))

    def _ends(self, status: RuntimePodStatus, record: RememberedPod) -> Runs:
        """Ends as far as they are known. What ran is not over as long as nobody has looked."""
        return tuple(_ended_by(run, self._alive_at) for run in record.runs if not self._is_hidden(run, status))

    def _is_hidden(self, run: RuntimeContainerStatus, status: RuntimePodStatus) -> bool:
        """Whether the observation is older than the run, of which it can say nothing."""
        return is_open(run) and status.observed_at <= self._expected.get(run.id, 0.0)

    # --- what changes them ---

    def restored(self, pods: Mapping[str, RememberedPod], alive_at: float) -> None:
        """The records of an earlier agent, which lived at that epoch second; 0.0 when nobody knows."""
        self._alive_at = alive_at
        for uid, record in pods.items():
            self._inherited.update(run.id for run in record.runs if is_open(run))
            self._set(uid, record)

    def begins(self, uid: str, container: RuntimeContainerStatus, now_mono: float) -> None:
        """A container of that wanted pod is about to be started."""
        record = self._known.find(uid).runs
        others = (run for run in record.runs if run.id != container.id)
        self._expected[container.id] = now_mono
        self._set(uid, RememberedPod(_newest((*others, _begun(container))), record.began_at))

    def observed(self, pod: Pod, status: RuntimePodStatus, now_wall: float) -> None:
        """Remember the runs that an observation shows of that wanted pod. Its texts are fit for a file
        (`supervisor.record.pod_texts`): an end lies on a disk."""
        kinds = {found.container.name: found.kind for found in every_container(pod.spec)}
        parts = self._known.of(status.uid)
        record = parts.runs
        known = {run.id: run for run in record.runs if run.name in kinds}
        shown = {container.id for container in status.containers}
        if parts.are_runs_stale:
            parts.are_runs_stale = False
            known = {id: run for id, run in known.items() if id in shown or not _was_reset(run, kinds[run.name])}
        there = shown.union(id for id, run in known.items() if self._is_hidden(run, status))
        runs = {id: run if id in there else self._gone(run, now_wall) for id, run in known.items()}
        self._inherited -= shown
        for id in shown & self._expected.keys():
            del self._expected[id]
        for container in status.containers:
            if container.name in kinds:
                run = self._run_of(container, runs.pop(container.id, None), now_wall)
                if run is not None:
                    runs[container.id] = run
        began_at = _earliest(record.began_at, status.sandboxes)
        self._set(status.uid, RememberedPod(_newest(runs.values()), began_at))

    def ended(self, status: RuntimePodStatus) -> None:
        """Remember how runs have ended of a pod that is wanted no more: its last status says it when they are gone."""
        if (record := self._known.find(status.uid).runs) is NO_RECORD:
            return
        ends = {c.id: c for c in status.containers if c.state is ContainerState.EXITED and not is_lost(c)}
        runs = (_with_reported(_trimmed(ends[run.id]), run) if run.id in ends else run for run in record.runs)
        self._set(status.uid, RememberedPod(tuple(runs), record.began_at))

    def _gone(self, run: RuntimeContainerStatus, now_wall: float) -> RuntimeContainerStatus:
        """The end of a container that is gone: of one that this agent has seen running, now."""
        if not is_open(run):
            return run
        if run.id in self._inherited:
            return _ended_by(run, min(self._alive_at, now_wall))
        return msgspec.structs.replace(_ended_by(run, now_wall), error=REMOVED_AS_IT_RAN)

    def _run_of(
        self, container: RuntimeContainerStatus, known: RuntimeContainerStatus | None, now_wall: float
    ) -> RuntimeContainerStatus | None:
        """The run of a container that is there, as it is remembered from now on."""
        if container.state is ContainerState.RUNNING:
            return _begun(container)
        if container.state is ContainerState.CREATED:
            return known if known is not None and is_open(known) else None
        if container.state is not ContainerState.EXITED:
            return known
        if not is_lost(container):
            return _with_reported(_trimmed(container), known)
        if known is not None and not is_open(known):
            return known
        finished_at = max(container.finished_at, min(self._alive_at, now_wall))
        return msgspec.structs.replace(_trimmed(container), finished_at=finished_at)

    def removed(self, uid: str, ids: Collection[str]) -> None:
        """A worker has removed these containers, or sandboxes with everything in them: what was the newest of its name
        there is remembered."""
        if ids and (record := self._known.find(uid).runs) is not NO_RECORD:
            newest = {run.name: run.id for run in reversed(record.runs)}
            superseded = {run.id for run in record.runs if run.sandbox_id in ids and newest[run.name] != run.id}
            kept = tuple(run for run in record.runs if run.id not in ids and run.id not in superseded)
            self._set(uid, RememberedPod(kept, record.began_at))

    def mark_stale(self, uid: str) -> None:
        """A sync of the pod has died with its worker, and may have removed containers to begin them anew."""
        self._known.of(uid).are_runs_stale = True

    def _set(self, uid: str, record: RememberedPod) -> None:
        parts = self._known.of(uid)
        before, parts.runs = parts.runs, NO_RECORD if record.is_empty() else record
        if record != before:
            self._note_change(before, record)
            parts.runs_version = self.version

    def _forgotten(self, uid: str, parts: PodParts) -> None:
        changed_at = parts.runs_version
        if parts.runs is not NO_RECORD:
            self._note_change(parts.runs, NO_RECORD)
            changed_at = self.version
        if changed_at:
            self._dropped.append((changed_at, uid))

    def _note_change(self, before: RememberedPod, record: RememberedPod) -> None:
        self.version += 1
        for run in before.runs:
            if run not in record.runs:
                self._expected.pop(run.id, None)
        if not _news(record) <= _news(before):
            self.urgent_version = self.version

    # --- for their file ---

    def changed_after(self, version: int) -> dict[str, RememberedPod]:
        """The pods that have changed since; empty when they were forgotten. Older changes are on the disk."""
        self._dropped = [(at, uid) for at, uid in self._dropped if at > version]
        changed = {uid: parts.runs for uid, parts in self._known.items() if parts.runs_version > version}
        return {**{uid: NO_RECORD for _, uid in self._dropped}, **changed}

    def everything(self) -> dict[str, RememberedPod]:
        """All of them, by UID."""
        return {uid: parts.runs for uid, parts in self._known.items() if parts.runs is not NO_RECORD}


def _news(record: RememberedPod) -> set[tuple[str, bool]]:
    """The facts that are lost if they are not on the disk: that a container ran, and that it has ended."""
    return {(run.id, is_open(run)) for run in record.runs}


def _was_reset(run: RuntimeContainerStatus, kind: ContainerKind) -> bool:
    """Whether a container that is gone may have gone to begin anew: an init container, or any that ran. An ephemeral
    one never starts a second time."""
    return kind is ContainerKind.INIT or (is_open(run) and kind is not ContainerKind.EPHEMERAL)


def _begun(container: RuntimeContainerStatus) -> RuntimeContainerStatus:
    """A run that goes on, as it is told to have ended if nothing of it is left."""
    return msgspec.structs.replace(
        _trimmed(container),
        state=ContainerState.EXITED,
        exit_code=UNKNOWN_EXIT_CODE,
        reason=CONTAINER_STATUS_UNKNOWN,
        finished_at=0.0,
    )


def _ended_by(run: RuntimeContainerStatus, at: float) -> RuntimeContainerStatus:
    """The run, which is over: if it went on when it was last seen, by that epoch second."""
    return msgspec.structs.replace(run, finished_at=max(run.started_at, at)) if is_open(run) else run


def _earliest(began_at: float, sandboxes: Iterable[SandboxStatus]) -> float:
    """When the first sandbox was made, as far as anything tells; 0.0 without any."""
    reported = [date for sandbox in sandboxes for date in (sandbox.created_at, _date(sandbox.active_since)) if date]
    return min(filter(None, (began_at, *reported)), default=0.0)


def _date(text: str) -> float:
    return parse_rfc3339(text) if text else 0.0


def _with_reported(end: RuntimeContainerStatus, known: RuntimeContainerStatus | None) -> RuntimeContainerStatus:
    """The end with the texts that were told of it while the pod's Secrets were known, where they are withheld now."""
    if known is None or WITHHELD not in (end.message, end.error):
        return end
    return msgspec.structs.replace(
        end,
        message=known.message if end.message == WITHHELD else end.message,
        error=known.error if end.error == WITHHELD else end.error,
    )


def _trimmed(container: RuntimeContainerStatus) -> RuntimeContainerStatus:
    """The container without what is of use only to one that runs or is there."""
    return msgspec.structs.replace(container, podman_state="", pre_stop=None, pid=0, start_ticks=0, monitor_pid=0)


def _newest(runs: Iterable[RuntimeContainerStatus]) -> Runs:
    """The newest runs of each name, in the order of a status."""
    ordered = RuntimePodStatus(uid="").with_containers(runs).containers
    names: dict[str, int] = {}
    kept = []
    for run in ordered:
        names[run.name] = names.get(run.name, 0) + 1
        if names[run.name] <= KEPT:
            kept.append(run)
    return tuple(kept)
