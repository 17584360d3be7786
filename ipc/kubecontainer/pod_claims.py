"""A claim of a pod's, as its worker needs it: what it is bound to, or why the pod has to wait. Pure."""

from __future__ import annotations

import msgspec

from ipc.api.v1.volume import HostPathVolumeSource


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
