"""Containers that the kernel has killed for want of memory, by the counts of the cgroups that they were in.

conmon looks at the container's own cgroup, and systemd removes that as soon as nothing runs in it: who is killed as a
whole is often gone before conmon has looked, and has ended with 137 for no reason that Podman knows. The cgroup of its
pod stays, and counts the kills of all that were below it. A container that has ended is one of those when there are
kills that neither those that run account for, by cgroups of their own, nor those that have ended before.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

import msgspec

from workers.kubecontainer.runtime import ContainerProcess
from workers.kubecontainer.slices import Slices

KILLED: Final = 137
"""Exit code of a process that SIGKILL has ended."""
PODS_OWN: Final = "libpod_pod_"
"""Part of the name of a cgroup that Podman makes for a pod; others, right above a container's, may be anybody's."""


class Cgroups(Protocol):
    """Methods of `Runtime` that the ledger uses."""

    @property
    def slices(self) -> Slices: ...

    def cgroup_of(self, process: ContainerProcess) -> str: ...

    def oom_kills(self, directory: str) -> int | None: ...


class _Pod(msgspec.Struct):
    directory: str
    explained: int
    """Kills of containers that had ended when that was last looked at."""
    running: dict[str, str] = msgspec.field(default_factory=dict)
    """Own cgroups by container id."""
    verdicts: dict[str, bool] = msgspec.field(default_factory=dict)
    """Answers for containers that have ended."""


class OomKills:
    """Counts of the node's pods. Holds what they were, because a count does not say whose it is."""

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups
        self._pods: dict[str, _Pod] = {}
        self._adopts = True

    def adopted(self) -> None:
        """Pods that are seen from now on are new: all kills that their cgroups count have been since."""
        self._adopts = False

    def runs(self, uid: str, process: ContainerProcess, *, is_infra: bool) -> None:
        """A container of that pod runs. A second call costs nothing. An infra container shows where the pod is."""
        pod = self._pods.get(uid)
        if pod is not None and (is_infra or process.container_id in pod.running):
            return
        own = self._cgroups.cgroup_of(process)
        pod = pod or self._found(uid, own)
        if pod is not None and own and not is_infra:
            pod.running[process.container_id] = own

    def has_killed(self, uid: str, container_id: str) -> bool:
        """Whether the kernel has killed something in that container, which has ended. The first answer stays."""
        pod = self._pods.get(uid) or self._found(uid, "")
        if pod is None:
            return False
        if container_id not in pod.verdicts:
            pod.running.pop(container_id, None)
            pod.verdicts[container_id] = self._judge(pod)
        return pod.verdicts[container_id]

    def forget(self, uid: str, container_id: str) -> None:
        """The container is gone. Its pod is kept while that has a cgroup, whose count goes on."""
        if (pod := self._pods.get(uid)) is not None:
            pod.running.pop(container_id, None)
            pod.verdicts.pop(container_id, None)
            if not pod.running and not pod.verdicts and self._cgroups.oom_kills(pod.directory) is None:
                del self._pods[uid]

    def drop_gone(self) -> None:
        """Forget pods that have no cgroup any more."""
        gone = [
            uid for uid, pod in self._pods.items() if not pod.running and self._cgroups.oom_kills(pod.directory) is None
        ]
        for uid in gone:
            del self._pods[uid]

    def _judge(self, pod: _Pod) -> bool:
        total = self._cgroups.oom_kills(pod.directory)
        if total is None:
            return False
        others = [self._cgroups.oom_kills(own) for own in pod.running.values()]
        of_ended = total - sum(count or 0 for count in others)
        is_more = of_ended > min(pod.explained, total)
        if None not in others:  # else another one has ended, too, and is looked at next: the kill may be its
            pod.explained = of_ended
        return is_more

    def _found(self, uid: str, own: str) -> _Pod | None:
        parent = os.path.dirname(own)
        directory = self._cgroups.slices.directory_of(uid) or (parent if PODS_OWN in os.path.basename(parent) else "")
        total = self._cgroups.oom_kills(directory) if directory else None
        if total is None:
            return None
        before = total - ((self._cgroups.oom_kills(own) if own else 0) or 0) if self._adopts else 0
        pod = self._pods[uid] = _Pod(directory, before)
        return pod
