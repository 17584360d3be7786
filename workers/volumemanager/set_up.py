"""Sets up a pod's volumes, with every sync of the pod, by a table of volume plugins.

Mirrors the volume manager's reconciler and each plugin's SetUp (pkg/kubelet/volumemanager, pkg/volume). Different on
purpose: there is no loop of its own; a sync sets volumes up before it decides, as upstream's SyncPod waits for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ipc.k8s.api.v1.volume import Volume
from ipc.link.messages import event_reasons
from ipc.link.messages.sync_error import SyncError
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError, why
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun
from workers.volumemanager.claims_record import note_claims
from workers.volumemanager.plugins.back_off import Failure
from workers.volumemanager.plugins.claim import set_up_claim
from workers.volumemanager.plugins.empty_dir import set_up_empty_dir
from workers.volumemanager.plugins.ephemeral import set_up_ephemeral
from workers.volumemanager.plugins.host_path import set_up_host_path
from workers.volumemanager.plugins.image import set_up_image
from workers.volumemanager.plugins.projected import set_up_object_volume
from workers.volumemanager.plugins.volume_host import VolumeHost

SetUp = Callable[[SyncRun, VolumeHost, PodSnapshot, Volume], Awaitable[MountedVolume]]
"""Raises VolumeError, OSError, SyncEnded."""


async def set_up_volumes(run: SyncRun, host: VolumeHost, of: PodSnapshot) -> dict[str, MountedVolume]:
    """Set up every volume of the pod; the mounted volumes by name. Raises SyncEnded when one of them is not ready; the
    others are then. One that has failed is tried again when its pause is over, and only then there is an event."""
    mounted: dict[str, MountedVolume] = {}
    failures: list[Failure] = []
    for volume in of.pod.spec.volumes:
        found = await _try(run, host, of, volume)
        if isinstance(found, Failure):
            failures.append(found)
        else:
            mounted[volume.name] = found
    await note_claims(run, host, of, mounted)
    if failures:
        words, retry_at = "; ".join(each.words for each in failures), min(each.retry_at for each in failures)
        raise SyncEnded(SyncError.FAILED_MOUNT, words, retry_at=retry_at)
    return mounted


async def _try(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume | Failure:
    """Raises SyncEnded."""
    back_off = host.back_off
    if waiting := back_off.waiting(of, volume, run.clock.now().wall):
        return waiting
    try:
        mounted = await _set_up(volume)(run, host, of, volume)
    except VolumeError as error:
        words = str(error)
    except OSError as error:
        words = str(VolumeError(volume.name, why(error)))
    else:
        back_off.succeeded(of, volume)
        return mounted
    await run.event(event_reasons.FAILED_MOUNT_VOLUME, words)
    return back_off.failed(of, volume, words, run.clock.now().wall)


def _set_up(volume: Volume) -> SetUp:
    """The plugin by the volume's source. Raises VolumeError for a kind that admission refuses."""
    for source, set_up in _BY_SOURCE.items():
        if getattr(volume, source) is not None:
            return set_up
    raise VolumeError(volume.name, "no volume plugin matched")


_BY_SOURCE: Final[Mapping[str, SetUp]] = {
    "empty_dir": set_up_empty_dir,
    "host_path": set_up_host_path,
    "image": set_up_image,
    "persistent_volume_claim": set_up_claim,
    "ephemeral": set_up_ephemeral,
    "config_map": set_up_object_volume,
    "secret": set_up_object_volume,
    "downward_api": set_up_object_volume,
    "projected": set_up_object_volume,
}
"""Plugin's set-up by attribute of `Volume`."""
