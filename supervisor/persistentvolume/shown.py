"""Volumes and claims with what has become of them: as they are shown, and as they are matched. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.podman_annotations import volume_options
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.persistent_volume import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from ipc.link.messages import event_reasons
from supervisor.persistentvolume.matching import AVAILABLE
from supervisor.persistentvolume.values import RETAIN
from supervisor.state.volume_bindings import Binding, VolumePhase

PODMAN_DRIVER: Final = "podman"
"""Driver that a volume of that class shows."""


def shown_volume(volume: PersistentVolume, binding: Binding | None) -> PersistentVolume:
    """The volume with its claim and its phase."""
    if binding is None:
        return _with_status(volume, AVAILABLE)
    meta = binding.claim.metadata
    claim_ref = ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
    spec = msgspec.structs.replace(volume.spec, claim_ref=claim_ref)
    reason = event_reasons.VOLUME_FAILED_DELETE.reason if binding.phase is VolumePhase.FAILED else ""
    return _with_status(msgspec.structs.replace(volume, spec=spec), binding.phase.value, binding.message, reason)


def _with_status(volume: PersistentVolume, phase: str, message: str = "", reason: str = "") -> PersistentVolume:
    status = PersistentVolumeStatus(phase=phase, message=message, reason=reason)
    return msgspec.structs.replace(volume, status=status)


def provisioned_volume(binding: Binding) -> PersistentVolume:
    """The volume of a claim that was given one in Podman, which is called as the claim. It is never removed."""
    claim = binding.claim
    return PersistentVolume(
        metadata=ObjectMeta(name=binding.volume, creation_timestamp=claim.metadata.creation_timestamp),
        spec=PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            persistent_volume_reclaim_policy=RETAIN,
            storage_class_name=claim.spec.storage_class_name or "",
            volume_mode=claim.spec.volume_mode,
            csi=CSIPersistentVolumeSource(
                driver=PODMAN_DRIVER,
                volume_handle=claim.metadata.name,
                volume_attributes=volume_options(claim.metadata.annotations),
            ),
        ),
    )


def shown_claim(
    claim: PersistentVolumeClaim, binding: Binding | None, volume: PersistentVolume | None, *, is_lost: bool = False
) -> PersistentVolumeClaim:
    """The claim with its volume and its phase. ``volume``: the one that it is bound to; None when that is not known,
    or gone, which ``is_lost`` tells."""
    if binding is None:
        return msgspec.structs.replace(claim, status=PersistentVolumeClaimStatus(phase="Pending"))
    metadata = msgspec.structs.replace(claim.metadata, deletion_timestamp=binding.deleted_at)
    spec = msgspec.structs.replace(claim.spec, volume_name=binding.volume)
    status = PersistentVolumeClaimStatus(phase="Lost" if is_lost else "Bound")
    if volume is not None:
        status = PersistentVolumeClaimStatus(
            phase="Bound", access_modes=volume.spec.access_modes, capacity=volume.spec.capacity
        )
    return msgspec.structs.replace(claim, metadata=metadata, spec=spec, status=status)
