"""Images of Podman's storage, and what a collection of garbage has removed or would remove."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.host.text.human import human_duration, mebibytes
from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE

HEADER: Final = ("REPOSITORY", "TAG", "IMAGE ID", "SIZE", "LAST USED", "USED BY", "KEPT")
ID_CHARS: Final = 12
_IN_USE: Final = "in use"


def image_rows(image: Json, now: float) -> Iterator[tuple[str, ...]]:
    """A row under HEADER for each name of an image, at ``now`` in epoch seconds."""
    users = image.get("users", [])
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    for name in image.get("names") or [""]:
        repository, tag = _split(name)
        yield (
            repository or NONE,
            tag or NONE,
            image["id"][:ID_CHARS],
            mebibytes(image.get("sizeBytes", 0)),
            _last_used(image, now),
            f"{users[0]}{more}" if users else NONE,
            image.get("stays") or NONE,
        )


def is_unused(image: Json) -> bool:
    """Whether nobody uses it; it may stay for another reason."""
    return bool(image.get("stays") != _IN_USE)


def collected_lines(report: Json, now: float) -> Iterator[str]:
    """A line for each thing that is removed or would be, and why, and the sum."""
    verb = "would be removed" if report["dryRun"] else "removed"
    later = "would be removed" if report["dryRun"] else "goes with the next sync of its pod"
    freed = 0
    for image in report["images"]:
        if image.get("error") or image.get("stays") not in (None, ""):
            continue
        freed += image.get("sizeBytes", 0)
        used = _last_used(image, now)
        why = "never used" if used == NONE else f"last used {used}"
        yield f"image/{_name(image)} {verb}: {mebibytes(image.get('sizeBytes', 0))}, {why}"
    for container in report["containers"]:
        yield f"container/{container['pod']}/{container['name']} ({container['id'][:ID_CHARS]}) {later}: dead, too many"
    for directory in report["directories"]:
        yield f"directory {directory} {verb}: its pod is gone"
    yield _summary(report, freed)


def _summary(report: Json, sizes: int) -> str:
    space = (
        f"up to {mebibytes(sizes)} would be freed by images"
        if report["dryRun"]
        else f"{mebibytes(report['freedBytes'])} freed by images"
    )
    capacity = report["capacityBytes"]
    used = f"; {100 - report['availableBytes'] * 100 // capacity}% of their file system in use" if capacity else ""
    return space + used


def _name(image: Json) -> str:
    return str(next(iter(image.get("names") or []), image["id"][:ID_CHARS]))


def _split(name: str) -> tuple[str, str]:
    """Repository, and tag or digest."""
    repository, at, digest = name.partition("@")
    if at:
        return repository, digest
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return head + slash + last, tag


def _last_used(image: Json, now: float) -> str:
    if image.get("stays") == _IN_USE:
        return "now"
    at = image.get("lastUsed", 0.0)
    return f"{human_duration(now - at)} ago" if at else NONE
