"""Claims that a pod has mounted, and where their files lie: a file in the pod's directory, which is removed with it.

The worker that sets volumes up writes it, and the statistics, another process's, read it. Upstream finds the same by
what is mounted below the pod's directory (ListVolumesForPod, pkg/kubelet/volume_host.go); here Podman mounts a claim's
directory itself.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.state_file import usable_state

FILE: Final = "mounted-claims.json"
MAX_BYTES: Final = 4 << 20
"""Longest file that is read; a manifest's largest pod with a path for each volume has less."""

log = logging.getLogger(__name__)


class ClaimKind(enum.StrEnum):
    """Kind of a claim's storage. A hostPath has no statistics, as upstream (MetricsNil, pkg/volume/hostpath)."""

    LOCAL = "kubernetes.io~local-volume"
    """A directory of the user's, perhaps a file system of its own, as whose use is told (MetricsStatFS,
    pkg/volume/local)."""
    PODMAN = "podman"
    """A plain directory of Podman's."""


class MountedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One of a pod's volumes that is a claim, or stands for one (a generic ephemeral volume)."""

    volume: str
    """Name of the volume in the pod."""
    claim: str
    """Name of the claim, in the pod's namespace."""
    kind: ClaimKind
    path: str


def read_mounted_claims(pods_dir: str, uid: str) -> tuple[MountedClaim, ...]:
    """Claims of that pod; none when there is no file that can be read. Blocks."""
    return usable_state(_file(pods_dir, uid), MAX_BYTES, _decode, "claims of a pod", log) or ()


def _decode(data: bytes) -> tuple[MountedClaim, ...]:
    return msgspec.json.decode(data, type=tuple[MountedClaim, ...])


def write_mounted_claims(pods_dir: str, uid: str, claims: Sequence[MountedClaim]) -> None:
    """Replaces the file in the pod's directory, which is there. Blocks. Raises OSError."""
    write_atomically(_file(pods_dir, uid), msgspec.json.encode(claims), durable=False)


def _file(pods_dir: str, uid: str) -> Path:
    return Path(pods_dir, uid, FILE)
