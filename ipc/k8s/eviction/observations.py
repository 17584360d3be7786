"""Observed signals, and the thresholds that they meet. Pure.

pkg/kubelet/eviction/helpers.go, makeSignalObservations and thresholdsMet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.k8s.api.quantity import Amount, Notation, add
from ipc.k8s.eviction.signals import EPHEMERAL_STORAGE, MEMORY, Signal, resource_of
from ipc.k8s.eviction.thresholds import Threshold

_BYTES: Final = frozenset({MEMORY, EPHEMERAL_STORAGE})
"""Resources whose amounts are bytes; the others are counted."""


class SignalObservation(msgspec.Struct, frozen=True, array_like=True):
    """One signal as it was at a time."""

    available: int
    capacity: int
    time: float = 0.0
    """Epoch seconds; 0.0 when that is not known."""


SignalObservations = Mapping[Signal, SignalObservation]


def of_memory(limit: int | None, working_set: int | None, time: float) -> SignalObservation | None:
    """Memory in bytes: what is left is the limit without the working set."""
    if limit is None or working_set is None:
        return None
    return SignalObservation(max(0, limit - working_set), limit, time)


def of_disk(available: int | None, capacity: int | None, time: float) -> SignalObservation | None:
    """Bytes or inodes of a file system; None of one that counts none (inodes on btrfs): it cannot run out of them."""
    return SignalObservation(available, capacity, time) if available is not None and capacity else None


def of_pids(max_pid: int | None, processes: int | None, time: float) -> SignalObservation | None:
    """Processes and threads."""
    if max_pid is None or processes is None:
        return None
    return SignalObservation(max_pid - processes, max_pid, time)


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
