"""Signals of eviction, with the resource that each is about and the node's condition that it means.

pkg/kubelet/eviction/api/types.go; the tables are those of pkg/kubelet/eviction/helpers.go, init.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
INODES: Final = "inodes"
PIDS: Final = "pids"


class Signal(enum.StrEnum):
    """Name of a figure of the node that may run short."""

    MEMORY_AVAILABLE = "memory.available"
    NODEFS_AVAILABLE = "nodefs.available"
    NODEFS_INODES_FREE = "nodefs.inodesFree"
    IMAGEFS_AVAILABLE = "imagefs.available"
    IMAGEFS_INODES_FREE = "imagefs.inodesFree"
    CONTAINERFS_AVAILABLE = "containerfs.available"
    CONTAINERFS_INODES_FREE = "containerfs.inodesFree"
    ALLOCATABLE_MEMORY_AVAILABLE = "allocatableMemory.available"
    PID_AVAILABLE = "pid.available"


class NodePressure(enum.StrEnum):
    """Type of the node's condition that a signal means."""

    MEMORY = "MemoryPressure"
    DISK = "DiskPressure"
    PID = "PIDPressure"


class _Meaning(msgspec.Struct, frozen=True):
    resource: str
    condition: NodePressure


_MEANINGS: Final[Mapping[Signal, _Meaning]] = {
    Signal.MEMORY_AVAILABLE: _Meaning(MEMORY, NodePressure.MEMORY),
    Signal.ALLOCATABLE_MEMORY_AVAILABLE: _Meaning(MEMORY, NodePressure.MEMORY),
    Signal.NODEFS_AVAILABLE: _Meaning(EPHEMERAL_STORAGE, NodePressure.DISK),
    Signal.IMAGEFS_AVAILABLE: _Meaning(EPHEMERAL_STORAGE, NodePressure.DISK),
    Signal.CONTAINERFS_AVAILABLE: _Meaning(EPHEMERAL_STORAGE, NodePressure.DISK),
    Signal.NODEFS_INODES_FREE: _Meaning(INODES, NodePressure.DISK),
    Signal.IMAGEFS_INODES_FREE: _Meaning(INODES, NodePressure.DISK),
    Signal.CONTAINERFS_INODES_FREE: _Meaning(INODES, NodePressure.DISK),
    Signal.PID_AVAILABLE: _Meaning(PIDS, NodePressure.PID),
}


def resource_of(signal: Signal) -> str:
    """Name of the resource that is starved when the signal's threshold is met (signalToResource)."""
    return _MEANINGS[signal].resource


def condition_of(signal: Signal) -> NodePressure:
    """Condition that the node has when the signal's threshold is met (signalToNodeCondition)."""
    return _MEANINGS[signal].condition
