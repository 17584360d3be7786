"""persistentVolumeClaim: the Podman volume of the claim's name, as `podman kube play` has it.

There are no claims here, and no provisioner: a volume that does not exist is made, with Podman's local driver, and one
that exists is used as it is, whatever its driver. It belongs to no pod and is never removed.
Namespaces do not keep volumes apart: they are the user's, and Podman has one name for each.

At the first use of a new volume Podman gives its root to the container's user, which is what lets a container that is
not root write to it without fsGroup. With fsGroup that would undo what is done here, so a volume made for it says whose
it is: then Podman leaves it alone. Of one that somebody else has made and nobody has used yet, the root gets the group
when the pod starts the next time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.api.v1.volume import Volume
from workers.kubecontainer import labels
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError
from workers.kubecontainer.pod_snapshot import PodSnapshot
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError, VolumeInfo
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.in_use import is_in_use
from workers.volumemanager.plugins.ownership import ON_ROOT_MISMATCH, fs_group, give_volume_to_group
from workers.volumemanager.plugins.volume_host import VolumeHost

_ROOTS: Final = {"o": "uid=0"}
"""Options of a volume that Podman does not give to its first user (libpod/options.go, WithVolumeNoChown)."""
_MOUNTED: Final = frozenset({"type", "device"})
"""Options that make Podman's local driver mount something (podman-volume-create(1))."""


async def set_up_claim(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError, SyncEnded."""
    source = volume.persistent_volume_claim
    assert source is not None, "a persistentVolumeClaim volume"
    mounted = MountedVolume(name=volume.name, claim=source.claim_name, read_only=source.read_only)
    return await set_up_podman_volume(run, host, of, mounted, {labels.INSTANCE: host.instance})


async def set_up_podman_volume(
    run: SyncRun, host: VolumeHost, of: PodSnapshot, mounted: MountedVolume, owner: Mapping[str, str]
) -> MountedVolume:
    """Make the Podman volume of ``mounted``, with ``owner`` as its labels, unless it is there. Raises VolumeError,
    SyncEnded."""
    if is_in_use(of.pod, mounted.name, of.status):
        return mounted
    group = fs_group(of.pod)
    try:
        found = await _ensure(run, mounted.claim, owner, {} if group is None else _ROOTS)
    except RuntimeCallError as error:
        raise VolumeError(mounted.name, error.message) from error
    if group is not None and is_directory(found):
        context = of.pod.spec.security_context
        is_lazy = context is not None and context.fs_group_change_policy == ON_ROOT_MISMATCH
        path = Path(found.mount_point)
        await give_volume_to_group(run, host.unshare, mounted.name, path, group, only_on_root_mismatch=is_lazy)
    return msgspec.structs.replace(mounted, claim_info=found)


def is_directory(volume: VolumeInfo) -> bool:
    """Whether the volume is a plain directory. Podman mounts any other while a container uses it."""
    return volume.driver == "local" and not _MOUNTED & volume.options.keys() and bool(volume.mount_point)


async def _ensure(run: SyncRun, name: str, owner: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
    """Raises RuntimeCallError, SyncEnded."""
    found = await run.read(run.runtime.inspect_volume, name)
    if found is not None:
        return found
    try:
        return await run.act(run.runtime.create_volume, name, owner, options)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NAME_IN_USE:
            raise
    found = await run.read(run.runtime.inspect_volume, name)  # another client was quicker
    if found is None:
        raise RuntimeCallError(ErrorKind.NOT_FOUND, "inspect volume", f"volume {name} is gone again")
    return found
