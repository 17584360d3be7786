"""The volume behind a claim of the cluster, or why a pod has to wait for it. Pure.

Mirrors getPVCExtractPV, getPVSpec and createVolumeSpec of
pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go. Of the kinds of volumes a host without root
mounts two; every other one is refused in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSource
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.pod_claims import PodClaim

BOUND: Final = "Bound"
BLOCK: Final = "Block"
ONE_POD: Final = ("ReadWriteOncePod",)
PROTECTION: Final = "kubernetes.io/pvc-protection"
"""Finalizer that keeps a claim while pods use it."""
_KINDS: Final = tuple(
    zip(PersistentVolumeSource.__struct_fields__, PersistentVolumeSource.__struct_encode_fields__, strict=True)
)
"""Attributes of a source, each with its name in JSON."""


def claim_problem(claim: PersistentVolumeClaim) -> str:
    """Why the claim cannot be mounted, whatever its volume is; empty when it may be."""
    if claim.metadata.deletion_timestamp and PROTECTION not in claim.metadata.finalizers:
        return "PVC is being deleted"
    if claim.status.phase != BOUND:
        return "PVC is not bound"
    return "" if claim.spec.volume_name else "PVC has empty pvc.Spec.VolumeName"


def pod_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PodClaim:
    """The volume that a bound claim names, as a pod mounts it."""
    if problem := next(_problems(claim, volume), ""):
        return PodClaim(problem=f"{about(claim.metadata.namespace, claim.metadata.name)}: {problem}")
    spec = volume.spec
    return PodClaim(
        volume=volume.metadata.name,
        host_path=spec.host_path,
        local_path=spec.local.path if spec.local is not None else "",
        nodes=spec.node_affinity.required if spec.node_affinity is not None else None,
        is_for_one_pod=claim.spec.access_modes == ONE_POD,
    )


def about(namespace: str, name: str) -> str:
    """Begin of the words of a problem."""
    return f"error processing PVC {namespace}/{name}"


def owner_problem(pod: Pod, claim: PersistentVolumeClaim, volume: Volume) -> str:
    """Why a pod may not have the claim for that volume, if it may not: an `ephemeral` one is its own (VolumeIsForPod,
    k8s.io/component-helpers, storage/ephemeral)."""
    owners = (owner for owner in claim.metadata.owner_references if owner.controller)
    if volume.ephemeral is None or any(owner.uid == pod.metadata.uid for owner in owners):
        return ""
    mine = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod {mine} (pod is not owner)"


def _problems(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Iterator[str]:
    name, spec = volume.metadata.name, volume.spec
    if spec.claim_ref is None:
        yield (f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim")
    elif spec.claim_ref.uid != claim.metadata.uid:
        yield (
            f"found PV object {name} but its pv.Spec.ClaimRef.UID {spec.claim_ref.uid} does not point to claim.UID "
            f"{claim.metadata.uid}"
        )
    if spec.host_path is None and spec.local is None:
        yield f'PersistentVolume "{name}" is of kind {_kind(spec)}: a host without root mounts only hostPath and local'
    if spec.volume_mode == BLOCK:
        yield f'PersistentVolume "{name}" has volumeMode Block, but is specified in volumeMounts'
    if spec.mount_options:
        yield "Mount options are not supported by the provided plugin but were specified for this volume"


def _kind(source: PersistentVolumeSource) -> str:
    """Name of the field that says what the volume is."""
    return next((name for attribute, name in _KINDS if getattr(source, attribute) is not None), "unknown")
