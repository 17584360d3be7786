"""A claim of a pod's, as its worker needs it: what it is bound to, or why the pod has to wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import NodeSelector
from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume


class PodClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly one of ``problem``, ``host_path``, ``local_path`` and ``podman_volume`` is set."""

    problem: str = ""
    """Why nothing of it can be mounted now."""
    volume: str = ""
    """Name of the PersistentVolume that it is bound to."""
    host_path: HostPathVolumeSource | None = None
    local_path: str = ""
    """Directory of a local volume."""
    podman_volume: str = ""
    """Name of a volume in Podman."""
    podman_options: Mapping[str, str] = {}
    """Options with which that volume is made, when it is not there."""
    nodes: NodeSelector | None = None
    """Nodes that reach the volume of a cluster's claim; the master looks whether this is one."""
    is_for_one_pod: bool = False
    """Whether a cluster's claim is ReadWriteOncePod; the master looks who has it."""


def claim_name(pod: Pod, volume: Volume) -> str:
    """Name of the claim that a volume of the pod stands for; empty when it stands for none. An `ephemeral` one does in
    a cluster only, whose controller makes the claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    is_made = volume.ephemeral is not None and is_api_pod(pod)
    return ephemeral_claim_name(pod.metadata.name, volume.name) if is_made else ""


def ephemeral_claim_name(pod: str, volume: str) -> str:
    """Name of the claim that a controller makes for a generic ephemeral volume (k8s.io/component-helpers,
    storage/ephemeral, VolumeClaimName)."""
    return f"{pod}-{volume}"
