"""ephemeral: a Podman volume that lives as long as its pod is wanted; of a cluster's pod the claim that the cluster
has made for it.

Upstream makes a claim ``<pod>-<volume>`` that the pod owns (k8s.io/component-helpers, storage/ephemeral,
VolumeClaimName; pkg/controller/volume/ephemeral). Podman's volumes have no namespaces and no owners, so the name has
the pod's namespace and uid too, and a mark in the pod's directory says what is to be removed with the pod: also by an
agent that finds nothing of the pod but that directory. How large the claim is to be is not acted on: Podman's local
driver has no size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.pod_claims import ephemeral_claim_name
from ipc.link.messages.sync_error import SyncError
from workers.fs.directories import is_name, made_below, private_root
from workers.kubecontainer import labels
from workers.kubecontainer.mounted_volume import MountedVolume, VolumeError, why
from workers.kubecontainer.runtime import RuntimeCallError
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncEnded
from workers.sync.run import PodRef, SyncRun
from workers.volumemanager.plugins.claim import set_up_claim, set_up_podman_volume
from workers.volumemanager.plugins.volume_host import VolumeHost

CLAIMS: Final = "claims"
"""Below the pod's directory: one directory called like each Podman volume of the pod."""
MAX_CLAIMS: Final = 1000
"""Marks that are read; a manifest of the largest size has fewer volumes."""


async def set_up_ephemeral(run: SyncRun, host: VolumeHost, of: PodSnapshot, volume: Volume) -> MountedVolume:
    """Raises VolumeError, OSError, SyncEnded."""
    if is_api_pod(of.pod):
        return await set_up_claim(run, host, of, volume)
    name = podman_volume_name(run.pod, volume.name)
    await run.in_files(volume.name, _mark, host.pods_dir, run.pod.uid, name)
    owner = {labels.INSTANCE: host.instance, labels.POD_UID: run.pod.uid}
    mounted = await set_up_podman_volume(run, host, of, MountedVolume(name=volume.name, claim=name), owner)
    found = mounted.claim_info
    if found is not None and found.labels.get(labels.POD_UID) != run.pod.uid:
        raise VolumeError(volume.name, f"Podman volume {name} was not created for the pod (the pod is not its owner)")
    return mounted


async def remove_ephemeral_volumes(run: SyncRun, host: VolumeHost) -> None:
    """Remove the pod's Podman volumes, once none of its containers is left. Raises SyncEnded."""
    try:
        names = await run.in_files(CLAIMS, _marked, host.pods_dir, run.pod.uid)
    except OSError as error:
        raise SyncEnded(SyncError.FAILED_UNMOUNT, f"ephemeral volumes: {why(error)}") from error
    for name in names:
        try:
            await run.act(run.runtime.remove_volume, name)
        except RuntimeCallError as error:
            raise SyncEnded(SyncError.FAILED_UNMOUNT, f"Podman volume {name}: {error.message}") from error


def podman_volume_name(pod: PodRef, volume: str) -> str:
    """Name in Podman; the first part is the claim's."""
    return f"{ephemeral_claim_name(pod.name, volume)}_{pod.namespace}_{pod.uid}"


def _mark(pods_dir: str, uid: str, name: str) -> None:
    """Blocks. Raises OSError."""
    with private_root(pods_dir) as root, made_below(root, uid, CLAIMS, name):
        """The directory is all."""


def _marked(pods_dir: str, uid: str) -> tuple[str, ...]:
    """Blocks. Raises OSError. The uid of an orphan is an untrusted label: one that cannot be a name has no volumes."""
    if not is_name(uid):
        return ()
    try:
        found = os.listdir(Path(pods_dir, uid, CLAIMS))
    except FileNotFoundError:
        return ()
    return tuple(sorted(found)[:MAX_CLAIMS])
