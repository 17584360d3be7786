"""Rows of PersistentVolumes and their claims (pkg/printers/internalversion/printers.go, printPersistentVolume,
printPersistentVolumeClaim)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import since
from ipc.k8s.resources.volume_cells import access_modes, claim, phase, storage

_UNSET: Final = "<unset>"


def volume_row(found: Json, now: float) -> Sequence[str]:
    """Cells of a PersistentVolume; ``now`` in epoch seconds."""
    meta, spec, status = found["metadata"], found["spec"], found["status"]
    return (
        meta["name"],
        storage(spec.get("capacity")),
        access_modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase(meta, status),
        claim(spec),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", _UNSET),
        status.get("reason", ""),
        since(meta.get("creationTimestamp"), now),
        spec.get("volumeMode", _UNSET),
    )


def claim_row(found: Json, now: float) -> Sequence[str]:
    """Cells of a PersistentVolumeClaim; ``now`` in epoch seconds."""
    meta, spec, status = found["metadata"], found["spec"], found["status"]
    bound = status if spec.get("volumeName") else {}
    return (
        meta["name"],
        phase(meta, status),
        spec.get("volumeName", ""),
        storage(bound.get("capacity")),
        access_modes(bound),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", _UNSET),
        since(meta.get("creationTimestamp"), now),
        spec.get("volumeMode", _UNSET),
    )
