"""Use of one resource by each pod, measured when a pod is to be chosen: a directory's files now, not a minute ago.

Memory and processes are the statistics'; their types are imported when they are first wanted.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ipc.host.clock import monotonic
from ipc.k8s.eviction.signals import MEMORY, PIDS
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from workers.eviction.removed_files import NONE, Holder, Holders, RemovedFiles, removed_files
from workers.fs.disk_usage import BLOCK_BYTES, bytes_and_inodes_at_least
from workers.kubecontainer.runtime import ContainerProcess
from workers.logs import layout
from workers.proc.cgroups import own_cgroup
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.userns.unshare import Unshare, UnshareError

if TYPE_CHECKING:
    from workers.statsapi.values import PodSample

log = logging.getLogger(__name__)

FROM_STATISTICS: Final = frozenset({MEMORY, PIDS})
"""Resources of which the statistics know each pod's use."""
MAX_FILES: Final = 50_000
"""Most files that are counted of one directory: one that has more uses at least what was counted."""
TOTAL_S: Final = 20.0
"""Directories are counted for so long at the most, in seconds; those that are left have no figures."""
CLOSED_DEADLINE_S: Final = 20.0


def usage_of(sample: PodSample) -> PodUsage:
    """Memory and processes, of a pod's statistics."""
    return PodUsage(
        uid=sample.uid,
        memory=sample.memory.working_set if sample.memory is not None else None,
        processes=sample.processes.count if sample.processes is not None else None,
        containers=tuple(
            ContainerUsage(name=each.name, memory=each.memory.working_set if each.memory is not None else None)
            for each in sample.containers
        ),
    )


def usage_of_disk(pods: Iterable[PodTarget], directories: PodDirectories, unshare: Unshare) -> tuple[PodUsage, ...]:
    """Bytes and inodes of layers, logs and volumes of each pod. Blocks, for `TOTAL_S` or a little more."""
    targets = tuple(pods)
    removed = _removed(targets, directories, unshare)
    counter = _Counter(unshare)
    return tuple(_pod(pod, directories, counter, held) for pod, held in zip(targets, removed, strict=True))


def _removed(pods: Sequence[PodTarget], directories: PodDirectories, unshare: Unshare) -> Sequence[RemovedFiles]:
    """Removed files that each pod has open; none where that cannot be seen."""
    holders = [Holders(pod.uid, {each.name: _holder(each) for each in pod.containers}) for pod in pods]
    try:
        return removed_files(holders, directories.pods, unshare)
    except UnshareError as error:
        log.warning("files that were removed while they are open are not counted: %s", error)
        return [NONE] * len(pods)


def _holder(container: ContainerTarget) -> Holder:
    process = ContainerProcess(container_id=container.id, pid=container.pid, start_ticks=container.start_ticks)
    return Holder(process, own_cgroup(container.pid, container.id))


def _pod(pod: PodTarget, directories: PodDirectories, counter: _Counter, removed: RemovedFiles) -> PodUsage:
    logs = str(layout.pod_directory(directories.logs, pod.namespace, pod.name, pod.uid))
    return PodUsage(
        uid=pod.uid,
        containers=tuple(_container(each, logs, counter, removed) for each in pod.containers),
        volumes={
            name: _sum(counter.count(path), removed.volumes.get(name)) or DiskUsage()
            for name, path in _volumes(directories.pods, pod.uid)
        },
        files=_files(os.path.join(directories.pods, pod.uid)),
    )


def _sum(counted: DiskUsage | None, removed: DiskUsage | None) -> DiskUsage | None:
    """At least one of them, where the other is not known."""
    if counted is None or removed is None:
        return counted or removed
    return DiskUsage((counted.used or 0) + (removed.used or 0), (counted.inodes or 0) + (removed.inodes or 0))


def _files(directory: str) -> DiskUsage | None:
    """Files that lie in a pod's directory itself; None when it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            found = [entry.stat(follow_symlinks=False) for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return None
    return DiskUsage(sum(file.st_blocks for file in found) * BLOCK_BYTES, len(found))


def _container(container: ContainerTarget, logs: str, counter: _Counter, removed: RemovedFiles) -> ContainerUsage:
    return ContainerUsage(
        name=container.name,
        rootfs=_sum(
            counter.count(container.layer) if container.layer else None, removed.containers.get(container.name)
        ),
        logs=counter.count(os.path.join(logs, container.name)),
    )


def _volumes(pods: str, uid: str) -> list[tuple[str, str]]:
    """Name and path of a pod's volumes on the disk."""
    root = os.path.join(pods, uid, "volumes")
    return [
        (name, os.path.join(root, plugin, name))
        for plugin in _names(root)
        for name in _names(os.path.join(root, plugin))
    ]


def _names(directory: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return ()


class _Counter:
    """Counts directories until the time is over."""

    def __init__(self, unshare: Unshare) -> None:
        self._unshare = msgspec.structs.replace(unshare, deadline_s=CLOSED_DEADLINE_S)
        self._end = monotonic() + TOTAL_S

    def count(self, path: str) -> DiskUsage | None:
        """None when it cannot be counted."""
        if monotonic() >= self._end:
            return None
        try:
            return DiskUsage(*bytes_and_inodes_at_least(path, MAX_FILES))
        except PermissionError:
            return self._inside(path)
        except OSError:
            return None

    def _inside(self, path: str) -> DiskUsage | None:
        """Inside Podman's namespaces, where a directory is closed to the agent's user."""
        step = (bytes_and_inodes_at_least.__name__, {"path": path, "max_files": MAX_FILES})
        try:
            [(used, inodes)] = self._unshare.run([step])
        except UnshareError:
            return None
        return DiskUsage(int(used), int(inodes))
