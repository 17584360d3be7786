"""Observed signals, and the thresholds that they meet (pkg/kubelet/eviction/helpers.go, makeSignalObservations). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.api.quantity import Amount, Notation, add
from ipc.eviction.signals import EPHEMERAL_STORAGE, MEMORY, Signal, resource_of
from ipc.eviction.thresholds import Threshold
from ipc.stats.values import FileSystem, Memory, ProcessLimit

_BYTES: Final = frozenset({MEMORY, EPHEMERAL_STORAGE})
"""Resources whose amounts are bytes; the others are counted."""


class NodeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the node that signals are derived from; None where one is not known."""

    memory: Memory | None = None
    allocatable_memory: Memory | None = None
    """Of all pods together, with the limit that is enforced for them."""
    node_fs: FileSystem | None = None
    image_fs: FileSystem | None = None
    container_fs: FileSystem | None = None
    process_limit: ProcessLimit | None = None


class SignalObservation(msgspec.Struct, frozen=True, array_like=True):
    """One signal as it was at a time."""

    available: int
    capacity: int
    time: float = 0.0
    """Epoch seconds; 0.0 when that is not known."""


SignalObservations = Mapping[Signal, SignalObservation]


def signal_observations(figures: NodeFigures) -> dict[Signal, SignalObservation]:
    """Those of the signals whose figures are known."""
    found = {
        Signal.MEMORY_AVAILABLE: _of_memory(figures.memory),
        Signal.ALLOCATABLE_MEMORY_AVAILABLE: _of_memory(figures.allocatable_memory),
        Signal.NODEFS_AVAILABLE: _of_bytes(figures.node_fs),
        Signal.NODEFS_INODES_FREE: _of_inodes(figures.node_fs),
        Signal.IMAGEFS_AVAILABLE: _of_bytes(figures.image_fs),
        Signal.IMAGEFS_INODES_FREE: _of_inodes(figures.image_fs),
        Signal.CONTAINERFS_AVAILABLE: _of_bytes(figures.container_fs),
        Signal.CONTAINERFS_INODES_FREE: _of_inodes(figures.container_fs),
        Signal.PID_AVAILABLE: _of_pids(figures.process_limit),
    }
    return {signal: observation for signal, observation in found.items() if observation is not None}


def _of_memory(memory: Memory | None) -> SignalObservation | None:
    """The capacity is that of which the working set is taken."""
    if memory is None or memory.limit is None or memory.working_set is None:
        return None
    return SignalObservation(max(0, memory.limit - memory.working_set), memory.limit, memory.time)


def _of_bytes(fs: FileSystem | None) -> SignalObservation | None:
    if fs is None or fs.available is None or fs.capacity is None:
        return None
    return SignalObservation(fs.available, fs.capacity, fs.time)


def _of_inodes(fs: FileSystem | None) -> SignalObservation | None:
    """None of a file system that counts no inodes (btrfs): it cannot run out of them."""
    if fs is None or fs.inodes_free is None or not fs.inodes:
        return None
    return SignalObservation(fs.inodes_free, fs.inodes, fs.time)


def _of_pids(limit: ProcessLimit | None) -> SignalObservation | None:
    if limit is None or limit.max_pid is None or limit.processes is None:
        return None
    return SignalObservation(limit.max_pid - limit.processes, limit.max_pid, limit.time)


def amount_of(signal: Signal, number: int) -> Amount:
    """A figure of the signal as a quantity: bytes in binary notation, what is counted in decimal."""
    return Amount(Fraction(number), Notation.BINARY if resource_of(signal) in _BYTES else Notation.DECIMAL)


def threshold_amount(threshold: Threshold, observed: SignalObservation) -> Amount:
    """The threshold's value as a quantity."""
    return threshold.value.of(amount_of(threshold.signal, observed.capacity))


def thresholds_met(
    thresholds: Iterable[Threshold], observations: SignalObservations, *, enforce_min_reclaim: bool = False
) -> tuple[Threshold, ...]:
    """Thresholds below which a signal is, whatever their grace period (thresholdsMet). ``enforce_min_reclaim``: those
    that have not got back as much more as is to be reclaimed, too."""
    return tuple(
        threshold
        for threshold in thresholds
        if (observed := observations.get(threshold.signal)) is not None
        and observed.available < _needed(threshold, observed, enforce_min_reclaim=enforce_min_reclaim).value
    )


def _needed(threshold: Threshold, observed: SignalObservation, *, enforce_min_reclaim: bool) -> Amount:
    needed = threshold_amount(threshold, observed)
    if not enforce_min_reclaim or threshold.min_reclaim is None:
        return needed
    return add(needed, threshold.min_reclaim.of(amount_of(threshold.signal, observed.capacity)))
