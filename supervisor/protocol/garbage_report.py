"""Report of a collection of garbage on the node: removed, or to be removed, for people."""

from __future__ import annotations

import msgspec

from ipc.k8s.kubecontainer.image_gc import ImageReport


class DeadContainer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A dead container beyond the node's maximum."""

    id: str
    name: str
    """Within its pod."""
    pod: str
    """Namespace and name."""


class GarbageReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Garbage of the node; without a dry run its containers go with the next syncs of their pods."""

    dry_run: bool
    images: tuple[ImageReport, ...] = ()
    """Images that go; in a dry run all images, those that stay too."""
    freed_bytes: int = 0
    """By the images that were removed."""
    capacity_bytes: int = 0
    """Capacity of the images' file system; 0 when it is not known."""
    available_bytes: int = 0
    containers: tuple[DeadContainer, ...] = ()
    directories: tuple[str, ...] = ()
    """Directories of pods that are gone."""
    errors: tuple[str, ...] = ()
