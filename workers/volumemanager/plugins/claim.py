"""persistentVolumeClaim: what a claim's document is bound to, and without a document the Podman volume of its name.

The master binds claims (`supervisor.persistentvolume`), but for those of a cluster's pods: these are the cluster's, and
no name of theirs ever means a volume of Podman's. A hostPath and a local volume are mounted as upstream does it
(pkg/volume/hostpath, pkg/volume/local), and `PodClaim.podman_volume` as a claim without a document is, which is as
`podman kube play` has it: a volume that does not exist is made, with Podman's local driver, and one
that exists is used as it is, whatever its driver. It belongs to no pod and is never removed.
Namespaces do not keep volumes apart: they are the user's, and Podman has one name for each.

Podman gives the root of a volume to the container's user; Podman 5 does so again at every start while the volume is
empty. So a volume says from the beginning whose it is: then Podman leaves it alone. With fsGroup it is root's and the
group's; without it the first container's (`workers.volumemanager.first_use`), and made when that container is. Two
kinds are Podman's to give away as before: those that it mounts, and those of pods with a user namespace of their own,
whose ids change with each sandbox. Of one that somebody else has made and nobody has used yet, the root gets the group
when the pod starts the next time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.k8s.podobjects.pod_claims import PodClaim, claim_name
from ipc.k8s.podresources.user_namespaces import has_own_ids
from workers.kubecontainer import labels
from workers.kubecontainer.mounted_volume import MountedVolume, UnmadeVolume, VolumeError
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError, VolumeInfo
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.host_path import check
from workers.volumemanager.plugins.in_use import is_in_use
from workers.volumemanager.plugins.ownership import ON_ROOT_MISMATCH, fs_group, give_volume_to_group
from workers.volumemanager.plugins.volume_host import VolumeHost

_ROOTS: Final = "uid=0"
"""Mount option of a volume that Podman gives to no container's user (libpod/options.go, WithVolumeNoChown)."""
NO_OPTIONS: Final[Mapping[str, str]] = {}
_MOUNTED: Final = frozenset({"type", "device"})
"""Options that make Podman's local driver mount something (podman-volume-create(1))."""


async def set_up_claim(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError, SyncEnded."""
    source = volume.persistent_volume_claim
    is_read_only = source is not None and source.read_only
    claim = _of_cluster(of, volume) if is_api_pod(of.pod) else _bound(of, volume.name, claim_name(of.pod, volume))
    if claim.host_path is not None:
        path = claim.host_path.path
        if not is_in_use(of.pod, volume.name, of.status):
            await run.unless_cancelled(run.in_files, volume.name, check, volume.name, claim.host_path)
    elif claim.local_path:
        path = claim.local_path
        await _set_up_local(run, host, of, volume.name, claim)
    else:
        mounted = MountedVolume(name=volume.name, claim=claim.podman_volume, read_only=is_read_only)
        owner = {labels.INSTANCE: host.instance}
        return await set_up_podman_volume(run, host, of, mounted, owner, claim.podman_options)
    return MountedVolume(name=volume.name, path=Path(path), read_only=is_read_only, is_foreign=True)


def _of_cluster(of: PodSnapshot, volume: Volume) -> PodClaim:
    """Volume that the cluster has bound the claim to. Raises VolumeError when that cannot be mounted now."""
    values = of.objects.cluster
    claim = values.claims.get(volume.name) if values is not None else None
    if claim is None or claim.problem:
        about = f"error processing PVC {of.pod.metadata.namespace}/{claim_name(of.pod, volume)}"
        unread = f"{about}: the cluster has not said anything of it since this agent began"
        raise VolumeError(volume.name, claim.problem if claim is not None else unread)
    return claim


def _bound(of: PodSnapshot, volume: str, name: str) -> PodClaim:
    """Volume that the claim stands for. Raises VolumeError when that cannot be mounted now."""
    if of.objects.is_unknown(ObjectKind.PERSISTENT_VOLUME_CLAIM, name):
        message = f'claim "{name}" is not known: the source that may state it was not read yet'
        raise VolumeError(volume, message)
    claim = of.objects.claims.get(name, PodClaim(podman_volume=name))
    if claim.problem:
        raise VolumeError(volume, claim.problem)
    return claim


async def _set_up_local(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: str, claim: PodClaim) -> None:
    """The directory must be there; its files are given to the pod's group (localVolumeMounter.SetUpAt)."""
    if is_in_use(of.pod, volume, of.status):
        return
    directory = HostPathVolumeSource(path=claim.local_path, type="Directory")
    await run.unless_cancelled(run.in_files, volume, check, volume, directory)
    if (group := fs_group(of.pod)) is not None:
        path, is_lazy = Path(claim.local_path), _is_lazy(of)
        await give_volume_to_group(run, host.unshare, volume, path, group, only_on_root_mismatch=is_lazy)


def _is_lazy(of: PodSnapshot) -> bool:
    context = of.pod.spec.security_context
    return context is not None and context.fs_group_change_policy == ON_ROOT_MISMATCH


async def set_up_podman_volume(
    run: SyncRun,
    host: VolumeHost,
    of: PodSnapshot,
    mounted: MountedVolume,
    owner: Mapping[str, str],
    options: Mapping[str, str] = NO_OPTIONS,
) -> MountedVolume:
    """Make the Podman volume of ``mounted``, with ``owner`` as its labels and these options, unless it is there or its
    first container decides whose it is. Raises VolumeError, SyncEnded."""
    if is_in_use(of.pod, mounted.name, of.status):
        return mounted
    group = fs_group(of.pod)
    try:
        found = await run.read(run.runtime.inspect_volume, mounted.claim)
        if found is None and is_for_first_user(of.pod, options):
            return msgspec.structs.replace(mounted, unmade=UnmadeVolume(labels=owner, options=options))
        if found is None:
            stated = options if group is None else owned_options(options)
            found = await make_volume(run, mounted.claim, owner, stated)
    except RuntimeCallError as error:
        raise VolumeError(mounted.name, error.message) from error
    if group is not None and is_directory(found):
        path, is_lazy = Path(found.mount_point), _is_lazy(of)
        await give_volume_to_group(run, host.unshare, mounted.name, path, group, only_on_root_mismatch=is_lazy)
    return msgspec.structs.replace(mounted, claim_info=found)


def is_for_first_user(pod: Pod, options: Mapping[str, str]) -> bool:
    """Whether a new volume with these options belongs to the first container that mounts it."""
    is_mounted = bool(_MOUNTED & options.keys())
    return fs_group(pod) is None and not (is_mounted or _states_owner(options) or has_own_ids(pod))


def owned_options(options: Mapping[str, str], owner: str = _ROOTS) -> dict[str, str]:
    """The options with an owner, of whom Podman leaves the volume."""
    stated = options.get("o", "")
    return {**options, "o": stated if _states_owner(options) else ",".join(filter(None, (owner, stated)))}


def _states_owner(options: Mapping[str, str]) -> bool:
    return any(option.startswith(("uid=", "gid=")) for option in options.get("o", "").split(","))


def is_directory(volume: VolumeInfo) -> bool:
    """Whether the volume is a plain directory. Podman mounts any other while a container uses it."""
    return volume.driver == "local" and not _MOUNTED & volume.options.keys() and bool(volume.mount_point)


async def make_volume(run: SyncRun, name: str, owner: Mapping[str, str], options: Mapping[str, str]) -> VolumeInfo:
    """Raises RuntimeCallError, SyncEnded."""
    try:
        return await run.act(run.runtime.create_volume, name, owner, options)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NAME_IN_USE:
            raise
    found = await run.read(run.runtime.inspect_volume, name)  # another client was quicker
    if found is None:
        raise RuntimeCallError(ErrorKind.NOT_FOUND, "inspect volume", f"volume {name} is gone again")
    return found
