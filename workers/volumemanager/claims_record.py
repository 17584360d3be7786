"""Record of the claims that a pod has mounted, for the statistics (`workers.kubecontainer.mounted_claims`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.pod_claims import PodClaim, ephemeral_claim_name
from workers.fs.directories import made_below, private_root
from workers.kubecontainer.mounted_claims import ClaimKind, MountedClaim, read_mounted_claims, write_mounted_claims
from workers.kubecontainer.mounted_volume import MountedVolume, why
from workers.kubecontainer.runtime import RuntimeCallError
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.plugins.claim import is_directory
from workers.volumemanager.plugins.volume_host import VolumeHost

log = logging.getLogger(__name__)

Known = Mapping[tuple[str, str], MountedClaim]
"""By names of volume and claim: what was noted earlier."""


async def note_claims(run: SyncRun, host: VolumeHost, of: PodSnapshot, mounted: Mapping[str, MountedVolume]) -> None:
    """Write down which claims are mounted where, if that is not what was written. A failure is a line in the log: the
    pod needs its volumes, not their statistics. Raises SyncEnded."""
    wanted = {volume.name: claim for volume in of.pod.spec.volumes if (claim := _claim_of(of, volume))}
    if not wanted.keys() & mounted.keys():
        return
    root, uid = host.pods_dir, run.pod.uid
    try:
        before = await run.in_files(root, read_mounted_claims, root, uid)
        known = {(each.volume, each.claim): each for each in before}
        every = [
            await _noted(run, of, claim, mounted[name], known) for name, claim in wanted.items() if name in mounted
        ]
        found = tuple(each for each in every if each is not None)
        if found != before:
            await run.in_files(root, _write, root, uid, found)
    except (OSError, RuntimeCallError) as error:
        text = why(error) if isinstance(error, OSError) else error.message
        log.warning("%s/%s: no statistics of its claims: %s", run.pod.namespace, run.pod.name, text)


def _claim_of(of: PodSnapshot, volume: Volume) -> str:
    """Name of the claim that the volume is or stands for; empty for any other volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return ephemeral_claim_name(of.pod.metadata.name, volume.name) if volume.ephemeral is not None else ""


async def _noted(
    run: SyncRun, of: PodSnapshot, claim: str, mounted: MountedVolume, known: Known
) -> MountedClaim | None:
    """None of a claim that has no statistics. Raises RuntimeCallError, SyncEnded."""
    if mounted.path is not None:
        is_local = bool(_bound(of, mounted.name, claim).local_path)
        path = str(mounted.path)
        return MountedClaim(volume=mounted.name, claim=claim, kind=ClaimKind.LOCAL, path=path) if is_local else None
    if mounted.unmade is not None:
        return None  # noted when it is made
    earlier = known.get((mounted.name, claim))
    if mounted.claim_info is None and earlier is not None:
        return earlier  # a container uses it: it is where it was
    found = mounted.claim_info or await run.read(run.runtime.inspect_volume, mounted.claim)
    if found is None or not is_directory(found):
        return None
    return MountedClaim(volume=mounted.name, claim=claim, kind=ClaimKind.PODMAN, path=found.mount_point)


def _bound(of: PodSnapshot, volume: str, claim: str) -> PodClaim:
    """Volume of the claim, by its document, or by the cluster whose pod it is."""
    cluster = of.objects.cluster
    if is_api_pod(of.pod):
        return cluster.claims.get(volume, PodClaim()) if cluster is not None else PodClaim()
    return of.objects.claims.get(claim, PodClaim())


def _write(pods_dir: str, uid: str, claims: Sequence[MountedClaim]) -> None:
    """Blocks. Raises OSError."""
    with private_root(pods_dir) as root, made_below(root, uid):
        write_mounted_claims(pods_dir, uid, claims)
