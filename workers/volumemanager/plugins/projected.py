"""Volumes that show ConfigMaps, Secrets and fields of the pod as files: made ready, and kept as new as these are.

Mirrors SetUpAt of pkg/volume/configmap, secret, downwardapi and projected. Each sync does it again (upstream:
RequiresRemount), which writes nothing when nothing has changed. As upstream ConfigMaps lie on the disk and the other
three in memory, which the kind alone decides: an edit never moves what a container has mounted. What has a Secret in
it is written to no file system but memory; swap is the operator's business, for rootless mounts have no ``noswap``.

Different on purpose: the directory is private to the agent's user down to the volume itself.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.host.file_systems import MEMORY_FILE_SYSTEMS, file_system_type
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.container import Container, VolumeMount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState
from ipc.link.messages import event_reasons
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError, why
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.atomic_writer import current_version, write_payload
from workers.volumemanager.plugins.ownership import WrittenOwner, fs_group
from workers.volumemanager.plugins.payload import Payload, PayloadError, PayloadSources, holds_secrets, make_payload
from workers.volumemanager.plugins.places import VolumeDirectory, volume_directory
from workers.volumemanager.plugins.volume_host import VolumeHost


class _Plugin(msgspec.Struct, frozen=True):
    """A kind of volume."""

    name: str
    is_in_memory: bool


_PLUGINS: Final = {
    "config_map": _Plugin("configmap", False),
    "secret": _Plugin("secret", True),
    "downward_api": _Plugin("downward-api", True),
    "projected": _Plugin("projected", True),
}
"""By attribute of `Volume`."""


async def set_up_object_volume(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Write a volume of one of the four kinds. Raises VolumeError, unless the pod runs with what an earlier sync has
    written: then it goes on with that, and an event says why it is not renewed."""
    pod, place = of.pod, _place(host, of.pod, volume)
    try:
        payload = make_payload(volume, PayloadSources(pod=pod, objects=of.objects, node=host.node))
        foreign = {path: file for path, file in payload.items() if file.is_foreign}
        owner = WrittenOwner(place=place, group=fs_group(pod), unshare=host.unshare, foreign=foreign)
        if await run.in_files(volume.name, _write, place, payload, run.clock.now().wall, pod, volume, owner):
            run.record.did(f"wrote volume {volume.name}")
    except (PayloadError, OSError) as error:
        failure = VolumeError(volume.name, why(error) if isinstance(error, OSError) else str(error))
        if not (_has_mounted(of.status) and await run.in_files(volume.name, _is_written, place)):
            raise failure from error
        await run.event(event_reasons.FAILED_MOUNT_VOLUME, str(failure))
    return MountedVolume(name=volume.name, path=place.path, read_only=True)


def _place(host: VolumeHost, pod: Pod, volume: Volume) -> VolumeDirectory:
    """Raises VolumeError."""
    plugin = next(plugin for attribute, plugin in _PLUGINS.items() if getattr(volume, attribute) is not None)
    root = host.memory_dir if plugin.is_in_memory else host.pods_dir
    if not root:
        raise VolumeError(volume.name, "there is no directory for it")
    return VolumeDirectory(root, pod.metadata.uid, plugin.name, volume.name)


def _has_mounted(view: RuntimePodStatus) -> bool:
    """Whether a sandbox of the pod is ready: its volumes were written since the host was started."""
    return any(sandbox.state is SandboxState.READY for sandbox in view.sandboxes)


def _write(
    place: VolumeDirectory, payload: Payload, wall: float, pod: Pod, volume: Volume, owner: WrittenOwner
) -> bool:
    """Blocks. Raises OSError."""
    with volume_directory(place) as directory:
        if holds_secrets(volume):
            _require_memory(directory, place)
        return write_payload(
            directory,
            payload,
            wall,
            mountpoints=nested_mountpoints(pod, volume.name),
            is_owned=owner.is_owned,
            set_owner=owner.set_owner,
        )


def _require_memory(directory: int, place: VolumeDirectory) -> None:
    found = file_system_type(directory)
    if found not in MEMORY_FILE_SYSTEMS:
        raise OSError(
            errno.ENOTSUP,
            f"{place.root} is no file system in memory but {found or 'unknown'}: a Secret is not written to it; "
            "choose another memoryDir",
        )


def _is_written(place: VolumeDirectory) -> bool:
    """Blocks."""
    try:
        with volume_directory(place) as directory:
            return current_version(directory) is not None
    except OSError:
        return False


def nested_mountpoints(pod: Pod, volume: str) -> tuple[str, ...]:
    """Paths of mount points below that volume, sorted, without those below another one of them.

    Mirrors getNestedMountpoints (pkg/volume/util/nested_volumes.go): a runtime that has made the outer mount read-only
    can make no directory in it. Different on purpose: what may be a file (a sub-path, a path of the host) is left to
    the runtime, for upstream's directory would be in the way of it.
    """
    files = frozenset(other.name for other in pod.spec.volumes if other.host_path is not None)
    paths = {path for found in every_container(pod.spec) for path in _nested(found.container, volume, files)}
    return tuple(path for path in sorted(paths) if not any(f"{path}/".startswith(f"{up}/") for up in paths - {path}))


def _nested(container: Container, volume: str, files: frozenset[str]) -> Iterator[str]:
    outer = [_rooted_path(mount) for mount in container.volume_mounts if mount.name == volume and _is_whole(mount)]
    inner = [_rooted_path(mount) for mount in container.volume_mounts if _is_whole(mount) and mount.name not in files]
    for place in outer:
        yield from (path.removeprefix(f"{place}/") for path in inner if path.startswith(f"{place}/"))


def _rooted_path(mount: VolumeMount) -> str:
    """Normalized path, rooted: no ``..`` leads out of it."""
    return posixpath.normpath(f"/{mount.mount_path}").replace("//", "/")


def _is_whole(mount: VolumeMount) -> bool:
    return not (mount.sub_path or mount.sub_path_expr)
