"""Images on the node (setters.go, Images)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.k8s.nodestatus.node import ContainerImage

MAX_NAMES: Final = 5
"""Most names of one image (MaxNamesPerImageInNodeStatus)."""
MAX_IMAGES: Final = 50
"""Default of nodeStatusMaxImages."""


class StoredImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the runtime's storage."""

    id: str = ""
    size: int = 0
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()


def node_images(images: Iterable[StoredImage], max_images: int = MAX_IMAGES) -> tuple[ContainerImage, ...]:
    """The largest images first; -1 is no limit. An image is named by digests, then by tags."""
    by_size = sorted(images, key=lambda image: (image.size, image.id), reverse=True)
    kept = by_size if max_images < 0 else by_size[:max_images]
    return tuple(
        ContainerImage(names=(*image.repo_digests, *image.repo_tags)[:MAX_NAMES], size_bytes=image.size)
        for image in kept
    )
