"""Where a pod's volumes lie (pkg/kubelet/kubelet_getters.go), and whether one is in use."""

from __future__ import annotations

from pathlib import Path

from ipc.api import Pod
from ipc.hashing import hash_in
from ipc.pod_containers import every_container
from ipc.runtime import ContainerState, RuntimePodStatus
from workers.pod_dirs import pod_directory

EMPTY_DIR = "kubernetes.io~empty-dir"


def volume_directory(pods_dir: str, uid: str, plugin: str, volume: str) -> Path:
    """getPodVolumeDir; ``plugin`` as ``kubernetes.io~empty-dir``."""
    return pod_directory(pods_dir, uid) / "volumes" / plugin / volume


def ready_file(pods_dir: str, uid: str, plugin: str, volume: str) -> Path:
    """Says that a volume is complete, and to which group it was given (getPodPluginDir, volumeutil.SetReady)."""
    return pod_directory(pods_dir, uid) / "plugins" / plugin / volume / "ready"


def held_directory(pods_dir: str, uid: str) -> Path:
    """Where containers' mounts come from that nobody may swap; what is mounted here shows to Podman only."""
    return pod_directory(pods_dir, uid) / "volume-subpaths"


def held_path(pods_dir: str, uid: str, volume: str, container: str, index: int) -> Path:
    """Of the container's volume mount with that number (pkg/volume/util/subpath, doBindSubPath)."""
    return held_directory(pods_dir, uid) / volume / container / str(index)


def is_in_use(pod: Pod, volume: str, view: RuntimePodStatus) -> bool:
    """Whether a container runs that has the volume as it is wanted: then that is set up, whatever became of it."""
    return any(
        any(mount.name == volume for mount in found.container.volume_mounts)
        and (newest := view.newest(found.container.name)) is not None
        and newest.state is ContainerState.RUNNING
        and newest.hash == hash_in(pod.spec, found.container)
        for found in every_container(pod.spec)
    )
