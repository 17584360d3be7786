"""Makes the Podman volumes that a container is the first to mount, with the owner that its image and user give them.

The owner is an option of the volume, so it is there with the volume or not at all, whenever the agent is killed, and of
two pods one decides. Asking the image takes 0.3 s, once in a volume's life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from ipc.k8s.api.v1.container import Container
from workers.kubecontainer import labels
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.image_service import ImageInfo
from workers.kubecontainer.mounted_volume import MountedVolume, UnmadeVolume
from workers.kubecontainer.runtime import VolumeInfo
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.userns.steps.first_owner import look_into_image, set_mode
from workers.userns.unshare import Unshare, UnshareError
from workers.volumemanager.claims_record import note_claims
from workers.volumemanager.first_owner import PODMANS_MODE, ImageAccounts, VolumeOwner, first_owner
from workers.volumemanager.plugins.claim import make_volume, owned_options
from workers.volumemanager.plugins.volume_host import VolumeHost


async def make_new_volumes(
    run: SyncRun,
    host: VolumeHost,
    of: PodSnapshot,
    container: Container,
    volumes: Mapping[str, MountedVolume],
    user: str,
    image: ImageInfo | None,
) -> Mapping[str, MountedVolume]:
    """The volumes, those made that the container mounts and that were not there. ``user`` is the container's, empty for
    the image's; ``image`` None when Podman was not asked for it yet.

    Raises ConfigError, RuntimeCallError, SyncEnded."""
    made: dict[str, MountedVolume] = {}
    for mount in container.volume_mounts:
        volume = volumes.get(mount.name)
        if volume is None or volume.unmade is None or mount.name in made:
            continue
        # Another container of the pod may have made it.
        found = await run.read(run.runtime.inspect_volume, volume.claim)
        if found is None:
            target = "" if mount.sub_path or mount.sub_path_expr else mount.mount_path
            owner = await _owner(run, host.unshare, container, user, image, target)
            found = await _made(run, host.unshare, volume, volume.unmade, owner)
        made[mount.name] = msgspec.structs.replace(volume, claim_info=found, unmade=None)
    if not made:
        return volumes
    every = {**volumes, **made}
    await note_claims(run, host, of, every)
    return every


async def _owner(
    run: SyncRun, unshare: Unshare, container: Container, user: str, image: ImageInfo | None, target: str
) -> VolumeOwner:
    """Raises ConfigError, RuntimeCallError, SyncEnded."""
    reference = str(parse_image_reference(container.image))
    info = image or await run.read(run.runtime.inspect_image, reference)
    if info is None:
        raise ConfigError(f'image "{container.image}" not found')  # removed since it was seen
    arguments = {"podman": unshare.command, "image": info.id, "target": target}
    try:
        ((passwd, group, there),) = await asyncio.to_thread(unshare.run, [(look_into_image.__name__, arguments)])
    except UnshareError as error:
        raise ConfigError(f'users of image "{container.image}": {error}') from error
    covered = VolumeOwner(*there) if there is not None else None
    return first_owner(user or info.user, ImageAccounts(passwd, group, covered))


async def _made(
    run: SyncRun, unshare: Unshare, volume: MountedVolume, unmade: UnmadeVolume, owner: VolumeOwner
) -> VolumeInfo:
    """Raises ConfigError, RuntimeCallError, SyncEnded."""
    options = owned_options(unmade.options, owner.option)
    found = await make_volume(run, volume.claim, unmade.labels, options)
    whose = unmade.labels.get(labels.POD_UID)
    if whose is not None and found.labels.get(labels.POD_UID) != whose:
        raise ConfigError(f"Podman volume {volume.claim} was not created for the pod (the pod is not its owner)")
    is_our_choice = found.options.get("o") == options["o"]  # else another client was quicker
    if is_our_choice and owner.mode != PODMANS_MODE:
        arguments = {"path": found.mount_point, "mode": owner.mode}
        try:
            await asyncio.to_thread(unshare.run, [(set_mode.__name__, arguments)])
        except UnshareError as error:
            raise ConfigError(f"mode of Podman volume {volume.claim}: {error}") from error
    return found
