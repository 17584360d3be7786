"""Decides which images are removed, and in which order. Pure.

Mirrors the image garbage collector (pkg/kubelet/images/image_gc_manager.go): the least recently used first, none that
is used, pinned or too young. Different on purpose: by default only images that this agent has pulled are looked at
(`ImageGcScope`). A removal is carried out by whoever drives `free_space` and `free_old`, and says what it has freed.

Times are wall time in seconds; 0.0 is before everything.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageGcScope, Stays
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.image_service import ListedImage

INFRA_IMAGES: Final = "localhost/podman-pause:*"
"""Podman builds it for the first sandbox, which costs seconds (specgen/generate, pause_image.go)."""


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Knowledge of an image beyond what Podman says (imageRecord)."""

    first_detected: float = 0.0
    last_used: float = 0.0
    pulled: tuple[str, ...] = ()
    """Names by which this agent has pulled it."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An image that may be removed (evictionInfo)."""

    id: str
    first_detected: float
    last_used: float
    size_bytes: int = 0
    names: tuple[str, ...] = ()


class Disk(msgspec.Struct, frozen=True):
    """The images' file system, in bytes."""

    capacity: int
    available: int

    @property
    def used_percent(self) -> int:
        """Part of the capacity that is used, as upstream rounds it. Not to be asked without a capacity."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity


Removal = Generator[Candidate, int, int]
"""Yields an image to remove, is sent the bytes that this has freed, and returns their sum."""


def detect(
    ids: Iterable[str], in_use: Collection[str], records: Mapping[str, ImageRecord], detected_at: float, now: float
) -> dict[str, ImageRecord]:
    """Records of the images that are there, and no others: new ones were first detected at ``detected_at``, and those
    ``in_use`` (ids) are used now (detectImages)."""
    found = {id: records.get(id) or ImageRecord(first_detected=detected_at) for id in ids}
    return {
        id: msgspec.structs.replace(record, last_used=now) if id in in_use else record for id, record in found.items()
    }


def in_eviction_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Least recently used first, of those the first detected (byLastUsedAndDetected)."""
    return sorted(candidates, key=lambda image: (image.last_used, image.first_detected))


def is_young(image: Candidate | ImageRecord, min_age_s: float, now: float) -> bool:
    """Whether the image may have just been pulled, for a container that comes right away."""
    return now - image.first_detected < min_age_s


def is_old(image: Candidate | ImageRecord, max_age_s: float, now: float) -> bool:
    """Whether the image was not used for longer than that. Different on purpose: one that never was counts from its
    detection, where upstream would remove at once what was pulled and not yet used."""
    return now - max(image.last_used, image.first_detected) > max_age_s


def free_space(images: Iterable[Candidate], bytes_to_free: float, min_age_s: float, now: float) -> Removal:
    """Remove images in this order until so much was freed (freeSpace)."""
    freed = 0
    for image in images:
        if image.last_used >= now or is_young(image, min_age_s, now):
            continue
        freed += yield image
        if freed >= bytes_to_free:
            break
    return freed


def free_old(images: Iterable[Candidate], max_age_s: float, began_at: float, now: float) -> Removal:
    """Remove images that were not used for longer than that; none before uses were watched for as long, which began at
    ``began_at`` (freeOldImages)."""
    freed = 0
    if max_age_s and now - began_at > max_age_s:
        for image in images:
            if is_old(image, max_age_s, now):
                freed += yield image
    return freed


def bytes_to_free(disk: Disk, policy: ImageGcPolicy) -> int:
    """How much has to go; 0 below the high threshold (GarbageCollect). Not to be asked of a disk without capacity."""
    if disk.used_percent < policy.high_threshold_percent:
        return 0
    wanted = disk.capacity * (100 - policy.low_threshold_percent) // 100
    return max(0, wanted - min(disk.available, disk.capacity))


def stays(image: ListedImage, record: ImageRecord, policy: ImageGcPolicy, now: float, *, in_use: bool) -> Stays | None:
    """Why this image is no garbage; None for garbage."""
    checks = (
        (in_use, Stays.IN_USE),
        (is_pinned(image.names, (INFRA_IMAGES, *policy.pinned)), Stays.PINNED),
        (image.is_read_only, Stays.READ_ONLY),
        (policy.scope is ImageGcScope.PULLED and not is_ours(image, record), Stays.FOREIGN),
        (is_young(record, policy.min_age_s, now), Stays.YOUNG),
    )
    return next((why for holds, why in checks if holds), None)


def is_ours(image: ListedImage, record: ImageRecord) -> bool:
    """Whether this agent has pulled it, and nobody has given it another name."""
    return bool(record.pulled) and set(image.names) <= set(record.pulled)


def is_pinned(names: Iterable[str], pinned: Sequence[str]) -> bool:
    """Patterns as CRI-O's pinned_images: a name, or its begin and ``*``."""
    exact = {name for name in pinned if not name.endswith("*")}
    begins = tuple(name.removesuffix("*") for name in pinned if name.endswith("*"))
    return any(name in exact or name.startswith(begins) for name in names)


def stored_name(reference: str) -> str:
    """The name under which Podman keeps an image that was pulled by this reference: a digest makes its tag void.

    Raises ValueError for what is no reference.
    """
    parsed = parse_image_reference(reference)
    return str(msgspec.structs.replace(parsed, tag="") if parsed.digest else parsed)
