"""emptyDir: a directory that lives as long as its pod, on the disk or in memory.

Mirrors pkg/volume/emptydir/empty_dir.go. Different on purpose: a tmpfs is mounted when a container is about to be made
that sees it (`workers.volumemanager.prepare`), because only then it matters and only Podman's mount namespace has it.
What was weighed against that, measured on Podman 4.3.1: a named volume of type tmpfs is unmounted, and empty, when the
last container that uses it stops, so its data would not outlive a crash unless the infra container held it; and it
takes one of Podman's 2048 locks. A plain directory below $XDG_RUNTIME_DIR has no size of its own: one pod could fill
what the whole session of the user lives on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.default_resources import aggregate_limits
from ipc.k8s.api.quantity import QuantityError, parse_quantity
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import MEMORY_MEDIUM, EmptyDirVolumeSource, Volume
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.ownership import fs_group, give_volume_to_group, group_given, note_group
from workers.volumemanager.plugins.places import VolumeDirectory, volume_directory
from workers.volumemanager.plugins.volume_host import VolumeHost

MODE: Final = 0o777


async def set_up_empty_dir(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError, OSError."""
    source = volume.empty_dir or EmptyDirVolumeSource()
    place = empty_dir_place(host.pods_dir, run.pod.uid, volume.name)
    if source.medium not in ("", MEMORY_MEDIUM):
        raise VolumeError(volume.name, f'unknown storage medium "{source.medium}"')
    await run.in_files(volume.name, _make, place)
    if source.medium == MEMORY_MEDIUM:
        memory_bytes = memory_size_bytes(source, of.pod, host.node.allocatable)
        return MountedVolume(name=volume.name, path=place.path, memory_bytes=memory_bytes)
    group = fs_group(of.pod)
    if group is not None and await run.in_files(volume.name, group_given, place.ready_file) != group:
        await give_volume_to_group(run, host.unshare, volume.name, place.path, group)
        await run.in_files(volume.name, note_group, place.ready_file, group)
    return MountedVolume(name=volume.name, path=place.path)


def _make(place: VolumeDirectory) -> None:
    """Make the directory, unless it is complete. Blocks. Raises OSError."""
    if not (place.path.is_dir() and place.ready_file.exists()):
        with volume_directory(place, MODE):
            note_group(place.ready_file, None)


def empty_dir_place(pods_dir: str, uid: str, name: str) -> VolumeDirectory:
    """Directory of a pod's emptyDir, of either medium."""
    return VolumeDirectory(pods_dir, uid, "empty-dir", name)


def memory_size_bytes(source: EmptyDirVolumeSource, pod: Pod, allocatable: Mapping[str, str]) -> int:
    """The least of the node's allocatable memory, the pod's limit and the volume's; 0 when none of them is known
    (calculateEmptyDirMemorySize)."""
    sizes = (_bytes(allocatable.get("memory")), _pod_memory_limit_bytes(pod), _bytes(source.size_limit))
    return min((size for size in sizes if size > 0), default=0)


def _pod_memory_limit_bytes(pod: Pod) -> int:
    """The pod's limit; 0 unless all its containers have one (ResourceConfigForPod, pkg/kubelet/cm/helpers_linux.go)."""
    if pod.spec.resources is not None and "memory" in pod.spec.resources.limits:
        return _bytes(pod.spec.resources.limits["memory"])
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    if not all("memory" in container.resources.limits for container in containers):
        return 0
    return _bytes(str(aggregate_limits(pod.spec)["memory"]))


def _bytes(quantity: str | int | float | None) -> int:
    try:
        return 0 if quantity is None else int(parse_quantity(quantity))
    except QuantityError:
        return 0
