"""File systems that eviction tells apart, and what that means for thresholds, reclaiming and ranking. Pure.

Mirrors the tables of pkg/kubelet/eviction/helpers.go: UpdateContainerFsThresholds, buildSignalToRankFunc and
buildSignalToNodeReclaimFuncs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.thresholds import Threshold


class Layout(enum.Enum):
    """Sharing of file systems by nodefs (directories of pods), imagefs (images) and containerfs (writable layers)."""

    ONE = "one"
    """All three do."""
    DEDICATED_IMAGEFS = "dedicated imagefs"
    """Images and layers have one of their own."""
    SPLIT = "split"
    """Images have one of their own; layers share that of the pods' directories, or have another one."""


class Part(enum.Enum):
    """A part of a pod's use of a disk."""

    ROOTFS = "writable layers"
    LOGS = "logs"
    VOLUMES = "local volumes"


class Reclaim(enum.Enum):
    """A way to free a disk before a pod is evicted."""

    CONTAINERS = "dead containers"
    IMAGES = "unused images"


def layout_of(*, has_image_fs: bool, is_split: bool) -> Layout:
    """Layout of the file systems, by what the runtime says: HasDedicatedImageFs, IsContainerFsSeparateFromImageFs."""
    if not has_image_fs:
        return Layout.ONE
    return Layout.SPLIT if is_split else Layout.DEDICATED_IMAGEFS


_NODE: Final[tuple[Signal, Signal]] = (Signal.NODEFS_AVAILABLE, Signal.NODEFS_INODES_FREE)
_IMAGE: Final[tuple[Signal, Signal]] = (Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE)
_CONTAINER: Final[tuple[Signal, Signal]] = (Signal.CONTAINERFS_AVAILABLE, Signal.CONTAINERFS_INODES_FREE)
_EVERYTHING: Final = frozenset(Part)
_BOTH: Final = (Reclaim.CONTAINERS, Reclaim.IMAGES)


class _Rules(msgspec.Struct, frozen=True):
    """The rules of one layout, for each of the three file systems."""

    follows: tuple[Signal, Signal]
    """Signals whose thresholds those of containerfs are."""
    node_parts: frozenset[Part]
    image_parts: frozenset[Part]
    container_parts: frozenset[Part]
    node_reclaim: tuple[Reclaim, ...]
    image_reclaim: tuple[Reclaim, ...]
    container_reclaim: tuple[Reclaim, ...]


_RULES: Final[Mapping[Layout, _Rules]] = {
    Layout.ONE: _Rules(_NODE, _EVERYTHING, _EVERYTHING, _EVERYTHING, _BOTH, _BOTH, _BOTH),
    Layout.DEDICATED_IMAGEFS: _Rules(
        _IMAGE,
        frozenset({Part.LOGS, Part.VOLUMES}),
        frozenset({Part.ROOTFS}),
        frozenset({Part.ROOTFS}),
        (),
        _BOTH,
        _BOTH,
    ),
    Layout.SPLIT: _Rules(
        _NODE,
        _EVERYTHING,
        frozenset(),
        _EVERYTHING,
        (Reclaim.CONTAINERS,),
        (Reclaim.IMAGES,),
        (Reclaim.CONTAINERS,),
    ),
}


def with_containerfs(thresholds: Iterable[Threshold], layout: Layout) -> tuple[Threshold, ...]:
    """The thresholds with those of containerfs, which are those of the file system that it shares, whatever is stated
    for it; a stated one keeps its place."""
    stated = tuple(thresholds)
    places = {(t.signal, t.is_hard): number for number, t in enumerate(stated) if t.signal in _CONTAINER}
    result: list[Threshold | None] = [None if t.signal in _CONTAINER else t for t in stated]
    for signal, source in zip(_CONTAINER, _RULES[layout].follows, strict=True):
        for is_hard in (True, False):
            followed = [t for t in stated if t.signal is source and t.is_hard is is_hard]
            if not followed:
                continue
            copy = msgspec.structs.replace(followed[-1], signal=signal)
            if (place := places.get((signal, is_hard))) is not None:
                result[place] = copy
            else:
                result.append(copy)
    return tuple(threshold for threshold in result if threshold is not None)


def parts_that_count(signal: Signal, layout: Layout) -> frozenset[Part]:
    """Parts of a pod's use that lie on the file system of that signal."""
    rules = _RULES[layout]
    return rules.node_parts if signal in _NODE else rules.image_parts if signal in _IMAGE else rules.container_parts


def ways_to_reclaim(signal: Signal, layout: Layout) -> tuple[Reclaim, ...]:
    """Ways to free that signal's resource on the node, in their order; none for memory and pids."""
    rules = _RULES[layout]
    ways = {_NODE: rules.node_reclaim, _IMAGE: rules.image_reclaim, _CONTAINER: rules.container_reclaim}
    return next((way for signals, way in ways.items() if signal in signals), ())
