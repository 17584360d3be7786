"""Words on PersistentVolumes and claims that tables and descriptions share (pkg/apis/core/v1/helper,
GetAccessModesAsString). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.host.text.json_types import Json

_SHORT: Final[Mapping[str, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def phase(meta: Json, status: Json) -> str:
    """The phase, or that the object is going."""
    return "Terminating" if meta.get("deletionTimestamp") else status.get("phase", "")


def storage(amounts: Json | None) -> str:
    """The amount of storage among resources; empty without one."""
    return str((amounts or {}).get("storage", ""))


def access_modes(of: Json) -> str:
    """Access modes of a spec or status, in their short forms."""
    return ",".join(_SHORT.get(mode, mode) for mode in of.get("accessModes", ()))


def claim(spec: Json) -> str:
    """Namespace and name of the claim that a volume is bound to; empty without one."""
    ref = spec.get("claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""
