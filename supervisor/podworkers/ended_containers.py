"""How containers of the wanted pods have ended: remembered beyond the containers, which anybody may remove.

The kubelet has its API server for that: a status that says terminated is kept there (pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses). An end is remembered when it is observed, and forgotten when a worker has removed the
container, which it does for a container that is to begin as if it had never run, and with its pod.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final

import msgspec

from ipc.api.pod_containers import ContainerKind, every_container
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_status import (
    CONTAINER_STATUS_UNKNOWN,
    UNKNOWN_EXIT_CODE,
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
)
from ipc.kubecontainer.remembered_ends import is_lost, lacking, with_remembered
from ipc.podobjects.redaction import WITHHELD

KEPT: Final = 2
"""Ends of each name: the state and the last state of a status."""
REMOVED_AS_IT_RAN: Final = "The container was removed while it ran"

Ends = tuple[RuntimeContainerStatus, ...]


class EndedContainers:
    """Owns the remembered ends, by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, Ends] = {}
        self._versions: dict[str, int] = {}
        """Version of the newest change of each pod, of forgotten ones too, until it is kept."""
        self._doubted: set[str] = set()
        self._alive_at = 0.0
        self.version = 0
        """Rises with every change."""

    # --- for those who observe and decide ---

    def merged(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """The observation with the ends that it lacks."""
        ends = self._pods.get(status.uid)
        return with_remembered(status, ends) if ends else status

    def lacked_by(self, status: RuntimePodStatus) -> Ends:
        """Ends that the observation lacks."""
        return lacking(status, self._pods.get(status.uid, ()))

    # --- what changes them ---

    def restored(self, pods: Mapping[str, Ends], alive_at: float) -> None:
        """Ends that an earlier agent has kept, which lived at that epoch second; 0.0 when nobody knows."""
        self._alive_at = alive_at
        for uid, ends in pods.items():
            self._set(uid, ends)

    def observed(self, pod: Pod, status: RuntimePodStatus, now_wall: float) -> None:
        """Remember the ends that an observation shows of that wanted pod. Its texts are fit for a file
        (`supervisor.record.pod_texts`): an end lies on a disk."""
        kinds = {found.container.name: found.kind for found in every_container(pod.spec)}
        known = {end.id: end for end in self._pods.get(status.uid, ()) if end.name in kinds}
        shown = {container.id for container in status.containers}
        if status.uid in self._doubted:
            self._doubted.discard(status.uid)
            known = {id: end for id, end in known.items() if id in shown or kinds[end.name] is not ContainerKind.INIT}
        ends = {id: end if id in shown else _ended_by(end, now_wall) for id, end in known.items()}
        for container in status.containers:
            if (kind := kinds.get(container.name)) is None:
                continue
            end = self._end_of(container, kind, ends.pop(container.id, None), now_wall)
            if end is not None:
                ends[container.id] = end
        self._set(status.uid, _newest(ends.values()))

    def _end_of(
        self,
        container: RuntimeContainerStatus,
        kind: ContainerKind,
        known: RuntimeContainerStatus | None,
        now_wall: float,
    ) -> RuntimeContainerStatus | None:
        """The end of a container that is there, as it is remembered from now on."""
        if container.state is ContainerState.RUNNING and kind is ContainerKind.EPHEMERAL:
            return _begun(container)
        if container.state is not ContainerState.EXITED:
            return known if container.state is ContainerState.UNKNOWN else None
        if not is_lost(container):
            return _with_told(_trimmed(container), known)
        if known is not None and known.finished_at:
            return known
        finished_at = max(container.finished_at, min(self._alive_at, now_wall))
        return msgspec.structs.replace(_trimmed(container), finished_at=finished_at)

    def removed(self, uid: str, ids: Collection[str]) -> None:
        """A worker has removed these containers, or sandboxes with everything in them: what was the newest of its name
        there is remembered."""
        if ids and (ends := self._pods.get(uid)):
            newest = {end.name: end.id for end in reversed(ends)}
            superseded = {end.id for end in ends if end.sandbox_id in ids and newest[end.name] != end.id}
            self._set(uid, tuple(end for end in ends if end.id not in ids and end.id not in superseded))

    def doubt(self, uid: str) -> None:
        """A sync of the pod has died with its worker, and may have removed init containers to begin them anew."""
        self._doubted.add(uid)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._doubted.discard(uid)
        self._set(uid, ())

    def retain(self, uids: Container[str]) -> None:
        """Forget all other pods."""
        for uid in [uid for uid in self._pods if uid not in uids]:
            self.forget(uid)

    def _set(self, uid: str, ends: Ends) -> None:
        if ends == self._pods.get(uid, ()):
            return
        self.version += 1
        self._versions[uid] = self.version
        if ends:
            self._pods[uid] = ends
        else:
            del self._pods[uid]

    # --- for their file ---

    def changed_after(self, version: int) -> dict[str, Ends]:
        """The pods that have changed since; without ends when they were forgotten. Older changes are on the disk."""
        self._versions = {uid: at for uid, at in self._versions.items() if at > version}
        return {uid: self._pods.get(uid, ()) for uid in self._versions}

    def everything(self) -> dict[str, Ends]:
        """All ends, by UID."""
        return dict(self._pods)


def _begun(container: RuntimeContainerStatus) -> RuntimeContainerStatus:
    """An ephemeral container, which never starts a second time, whatever becomes of this run."""
    return msgspec.structs.replace(
        _trimmed(container),
        state=ContainerState.EXITED,
        exit_code=UNKNOWN_EXIT_CODE,
        reason=CONTAINER_STATUS_UNKNOWN,
        error=REMOVED_AS_IT_RAN,
        finished_at=0.0,
        pid=0,
        start_ticks=0,
        monitor_pid=0,
    )


def _ended_by(end: RuntimeContainerStatus, now_wall: float) -> RuntimeContainerStatus:
    """The end of a container that is gone: of one that ran when it was last seen, now."""
    return end if end.finished_at else msgspec.structs.replace(end, finished_at=now_wall)


def _with_told(end: RuntimeContainerStatus, known: RuntimeContainerStatus | None) -> RuntimeContainerStatus:
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


def _newest(ends: Iterable[RuntimeContainerStatus]) -> Ends:
    """The newest ends of each name, in the order of a status."""
    ordered = RuntimePodStatus(uid="").with_containers(ends).containers
    names: dict[str, int] = {}
    kept = []
    for end in ordered:
        names[end.name] = names.get(end.name, 0) + 1
        if names[end.name] <= KEPT:
            kept.append(end)
    return tuple(kept)
