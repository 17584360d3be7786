"""A container's mounts, in libpod's words. Pure.

Mirrors makeMounts (pkg/kubelet/kubelet_pods.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ipc.api import Container
from workers.volumes.mounted import MountedVolume


class Mounts(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a SpecGenerator."""

    binds: tuple[Mapping[str, Any], ...] = ()
    """``mounts``: OCI mounts of paths of the host."""
    image_volumes: tuple[Mapping[str, Any], ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    """Podman's named volumes."""


def make_mounts(container: Container, mounted: Mapping[str, MountedVolume], environment: Mapping[str, str]) -> Mounts:
    """What of the pod's volumes that container sees, and where. ``environment`` is for subPathExpr.

    Raises ConfigError.
    """
    return Mounts()
