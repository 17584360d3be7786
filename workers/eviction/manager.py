"""Measures a pod's local storage, and evicts a pod that takes more than it may.

Upstream measures volumes every minute and compares every ten seconds (pkg/kubelet/eviction/eviction_manager.go,
synchronize). Here a pod with such limits is measured by each of its syncs that has nothing else to do, so at least as
often as they come round. A pod without costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.eviction_marks import mark_evicted
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import EVICTED, PodFailure, encode_failure
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.scheduling.priority import is_critical
from ipc.link.messages import event_reasons
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.eviction.limits import (
    MAX_S,
    StorageUsage,
    containers_to_measure,
    exceeded_limit,
    signal_of,
    total,
    volumes_to_measure,
    with_removed_files,
)
from workers.eviction.removed_files import NONE, Holder, Holders, RemovedFiles, removed_files
from workers.fs.directories import made_below, private_root
from workers.fs.disk_usage import MAX_FILES, bytes_of_files, used_bytes
from workers.kubecontainer.mounted_volume import why
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer
from workers.logs.pod_dirs import pod_directory
from workers.logs.termination_message import termination_logs
from workers.network.etc_mounts import HOSTS_NAME, RESOLV_CONF_NAME
from workers.sync.run import PodRef, SyncRun
from workers.userns.unshare import Unshare, UnshareError, UnshareTimeout
from workers.volumemanager.plugins.empty_dir import empty_dir_place
from workers.volumemanager.plugins.volume_host import VolumeHost

FILES_OF_PODMAN: Final = ("hostname", ".containerenv")
"""Files of Podman's that a container may write to, beside one another in the user's runtime directory."""
SMALL_TREE_FILES: Final = 20_000
"""Most files counted in a thread of the worker, which takes a tenth of a second. Larger trees are counted by a process
of its own, whose timeout counts as exceeding the limit; a timeout of a small tree is the disk's or Podman's fault."""

log = logging.getLogger(__name__)


async def evict_if_beyond_limits(
    run: SyncRun, host: VolumeHost, logs: Callable[[PodRef], Path], pod: Pod, status: RuntimePodStatus
) -> None:
    """Mark a pod that takes more of the disk than it may, and say so in the sync's record. ``logs``: pods' log
    directories.

    A pod with too many files to be measured is beyond its limits. One that cannot be measured by no fault of its own
    (the disk, Podman) goes on, with an event. Raises SyncEnded."""
    volumes, containers = volumes_to_measure(pod), containers_to_measure(pod)
    if (not volumes and not containers) or is_critical(pod):
        return
    unshare = host.unshare
    run.step("measuring local storage")
    try:
        own = pod_directory(host.pods_dir, run.pod.uid)
        newest = {name: await _inspected(run, status.newest(name)) for name in containers}
        usage = StorageUsage(
            volumes={
                name: await _disk_usage(run, unshare, [str(empty_dir_place(host.pods_dir, run.pod.uid, name).path)])
                for name in volumes
            },
            containers={
                name: await _of_container(run, unshare, logs(run.pod) / name, own, found)
                for name, found in newest.items()
            },
            files=await run.in_files("files", bytes_of_files, _shared_files(own, newest.values())) if containers else 0,
        )
        usage = with_removed_files(usage, await _removed_files(run, host, status))
    except (OSError, UnshareError) as error:
        words = why(error) if isinstance(error, OSError) else str(error)
        await run.event(event_reasons.FAILED_STORAGE_MEASURE, f"limits of local storage are not enforced: {words}")
        return
    message = exceeded_limit(pod, usage)
    if message:
        await keep_evicted(run, host.pods_dir, PodFailure(reason=EVICTED, message=message))
        METERS.counter(metrics.EVICTIONS, signal_of(message)).inc()
        run.record.evicted(message)


async def _removed_files(run: SyncRun, host: VolumeHost, status: RuntimePodStatus) -> RemovedFiles:
    """Where they cannot be looked at the other limits hold, with an event. Raises SyncEnded."""
    running = [container for container in status.containers if container.state is ContainerState.RUNNING]
    try:
        return await run.unless_cancelled(run.in_files, "descriptors", _look, run, host, running)
    except UnshareError as error:
        words = f"files that were removed while they are open are not counted: {error}"
        await run.event(event_reasons.FAILED_STORAGE_MEASURE, words)
        return NONE


def _look(run: SyncRun, host: VolumeHost, running: Iterable[RuntimeContainerStatus]) -> RemovedFiles:
    """Raises UnshareError."""
    processes = {
        each.name: ContainerProcess(container_id=each.id, pid=each.pid, start_ticks=each.start_ticks)
        for each in running
    }
    holders = {name: Holder(process, run.runtime.cgroup_of(process)) for name, process in processes.items()}
    [found] = removed_files([Holders(run.pod.uid, holders)], host.pods_dir, host.unshare)
    return found


async def keep_evicted(run: SyncRun, pods_dir: str, failure: PodFailure) -> None:
    """Write why the pod was evicted to disk, for later agents. A full disk may not take it before the volumes are
    gone."""
    try:
        await run.in_files("mark", _mark, pods_dir, run.pod.uid, encode_failure(failure))
    except OSError as error:
        log.warning("pod %s: its eviction cannot be kept on disk: %s", run.pod.uid, why(error))


def _mark(pods_dir: str, uid: str, text: str) -> None:
    with private_root(pods_dir) as root, made_below(root, uid):
        mark_evicted(pod_directory(pods_dir, uid), text)


async def _inspected(run: SyncRun, newest: RuntimeContainerStatus | None) -> InspectedContainer | None:
    return await run.find(run.runtime.inspect_container, newest.id) if newest is not None else None


def _shared_files(own: Path, containers: Iterable[InspectedContainer | None]) -> set[Path]:
    """Files that each of the pod's containers may write to: the agent's, and what Podman has made in their place."""
    of_podman = {Path(found.resolv_conf) for found in containers if found is not None and found.resolv_conf}
    return {own / HOSTS_NAME, own / RESOLV_CONF_NAME, *of_podman}


async def _of_container(
    run: SyncRun, unshare: Unshare, logs: Path, own: Path, found: InspectedContainer | None
) -> int | None:
    """Bytes of a container's logs, of the layer of its newest attempt, if the storage driver has one (vfs has not), and
    of the files that this was given; ``own``: the pod's directory. Raises OSError, UnshareError, SyncEnded."""
    given = await run.in_files("files", _bytes_given, own, logs.name, found.hostname_file if found is not None else "")
    trees = [str(logs), *([found.layer] if found is not None and found.layer else [])]
    return total((given, await _disk_usage(run, unshare, trees)))


def _bytes_given(own: Path, container: str, hostname_file: str) -> int:
    """Bytes of the files that were mounted into a container alone: for termination messages of every attempt, and
    Podman's. Raises OSError."""
    of_podman = [Path(hostname_file).with_name(name) for name in FILES_OF_PODMAN] if hostname_file else []
    return bytes_of_files([*(own / name for name in termination_logs(own, container)), *of_podman])


async def _disk_usage(run: SyncRun, unshare: Unshare, paths: Iterable[str]) -> int | None:
    """Raises OSError, UnshareError, SyncEnded."""
    return total([await run.unless_cancelled(run.in_files, path, _measure, path, unshare) for path in paths])


def _measure(path: str, unshare: Unshare) -> int | None:
    """Bytes in use; None when there are more files than are counted, or counting a large tree takes too long."""
    if (used := _of_a_small_tree(path, unshare)) is not None:
        return used
    patient = msgspec.structs.replace(unshare, deadline_s=MAX_S)
    try:
        return _measured_inside(path, patient, MAX_FILES)
    except UnshareTimeout:
        return None


def _of_a_small_tree(path: str, unshare: Unshare) -> int | None:
    """Bytes in use; counted inside Podman's namespaces, which takes 0.1 s, where a directory is closed to the agent."""
    try:
        return used_bytes(path, SMALL_TREE_FILES)
    except PermissionError:
        return _measured_inside(path, unshare, SMALL_TREE_FILES)


def _measured_inside(path: str, unshare: Unshare, max_files: int) -> int | None:
    [used] = unshare.run([(used_bytes.__name__, {"path": path, "max_files": max_files})])
    return None if used is None else int(used)
