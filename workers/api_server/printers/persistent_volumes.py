"""Rows of PersistentVolumes and their claims (pkg/printers/internalversion/printers.go, printPersistentVolume,
printPersistentVolumeClaim)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ipc.resources.times import since

Json = Mapping[str, Any]

_UNSET: Final = "<unset>"
_SHORT: Final[Mapping[str, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def volume_row(found: Json, now: float) -> Sequence[str]:
    """Cells of a PersistentVolume; ``now`` in epoch seconds."""
    meta, spec, status = found["metadata"], found["spec"], found["status"]
    return (
        meta["name"],
        _storage(spec.get("capacity")),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(meta, status),
        _claim(spec),
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
        _phase(meta, status),
        spec.get("volumeName", ""),
        _storage(bound.get("capacity")),
        _modes(bound),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", _UNSET),
        since(meta.get("creationTimestamp"), now),
        spec.get("volumeMode", _UNSET),
    )


def _phase(meta: Json, status: Json) -> str:
    return "Terminating" if meta.get("deletionTimestamp") else status.get("phase", "")


def _storage(amounts: Json | None) -> str:
    return str((amounts or {}).get("storage", ""))


def _modes(of: Json) -> str:
    return ",".join(_SHORT.get(mode, mode) for mode in of.get("accessModes", ()))


def _claim(spec: Json) -> str:
    ref = spec.get("claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""
