"""A volume that was set up, and the error of one that was not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from workers.kubecontainer.runtime import VolumeInfo


class UnmadeVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A Podman volume that is not there yet: whose it will be says the first container that mounts it."""

    labels: Mapping[str, str]
    options: Mapping[str, str]


class MountedVolume(msgspec.Struct, frozen=True, kw_only=True):
    """One of a pod's volumes, ready. Exactly one of ``path``, ``image`` and ``claim`` is set."""

    name: str
    path: Path | None = None
    """The directory or file on the host."""
    image: str = ""
    """Complete reference of the image that is mounted."""
    claim: str = ""
    """Name of the Podman volume."""
    claim_info: VolumeInfo | None = None
    """Inspect of that volume; None when setting it up needed none."""
    unmade: UnmadeVolume | None = None
    """How that volume is to be made, before a container sees it; None when it was there."""
    read_only: bool = False
    """By what it is, whatever a mount says."""
    is_foreign: bool = False
    """The path is the user's own: no container's label or group is put on it, and others can lead it elsewhere."""
    memory_bytes: int | None = None
    """A tmpfs of that size belongs on the path, before a container sees it; 0 leaves the size to the kernel."""


class VolumeError(Exception):
    """A volume cannot be set up now; the text is for people and holds no secret."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')
        self.volume = volume


def why(error: OSError) -> str:
    """Words of an error, with the name of the file when there is one."""
    words = error.strerror or str(error)
    return f"{os.fsdecode(error.filename)!r}: {words}" if isinstance(error.filename, str | bytes) else words
