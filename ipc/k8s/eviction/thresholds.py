"""Thresholds of eviction and their parser (pkg/kubelet/eviction/helpers.go, ParseThresholdConfig). Pure.

Differs on purpose: an error names the setting and the signal, and thresholds come in the order of the configuration
(upstream: a map's).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.host.text.durations import parse_duration
from ipc.k8s.api.quantity import MAX_QUANTITY_CHARS, Amount, Notation, QuantityError, parse_amount
from ipc.k8s.eviction.signals import Signal

DEFAULT_HARD: Final[Mapping[str, str]] = {
    Signal.MEMORY_AVAILABLE.value: "100Mi",
    Signal.NODEFS_AVAILABLE.value: "10%",
    Signal.NODEFS_INODES_FREE.value: "5%",
    Signal.IMAGEFS_AVAILABLE.value: "15%",
    Signal.IMAGEFS_INODES_FREE.value: "5%",
}
"""pkg/kubelet/eviction/defaults_linux.go."""
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_INFINITY_BITS: Final = 0x7F800000
"""Bits of the float32 that is no number any more."""
_IGNORED: Final = frozenset({"0%", "100%"})
"""Values that switch a threshold off."""


class ThresholdError(ValueError):
    """A threshold that cannot be used. ``setting``: which of the four mappings states it."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(message)
        self.setting = setting


class ThresholdValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quantity, or a share of the capacity."""

    quantity: str = ""
    """In the canonical form, so that two that are equal are equal; empty for a share."""
    percentage: float = 0.0
    """Between 0 and 1, with the precision of Go's float32."""

    def of(self, capacity: Amount) -> Amount:
        """The quantity itself, or that share (pkg/kubelet/eviction/api/types.go, GetThresholdQuantity)."""
        if self.quantity:
            return parse_amount(self.quantity)
        return Amount(Fraction(int(float(math.ceil(capacity.value)) * self.percentage)), Notation.BINARY)


class Threshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods are evicted while less than this is available, and has been for the grace period."""

    signal: Signal
    value: ThresholdValue
    grace_period_s: float = 0.0
    """0 for a hard threshold."""
    min_reclaim: ThresholdValue | None = None
    """So much more than the value has to be available before eviction ends."""

    @property
    def is_hard(self) -> bool:
        """Whether eviction begins at once and gives pods hardly any time to stop (isHardEvictionThreshold)."""
        return self.grace_period_s == 0.0


class EvictionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration's part of eviction, as it is written there."""

    hard: Mapping[str, str] = {}
    soft: Mapping[str, str] = {}
    soft_grace_period: Mapping[str, str] = {}
    minimum_reclaim: Mapping[str, str] = {}


def parse_thresholds(settings: EvictionSettings) -> tuple[Threshold, ...]:
    """All thresholds: the hard ones, then the soft ones. Raises ThresholdError."""
    reclaims = dict(_minimum_reclaims(settings.minimum_reclaim))
    graces = dict(_grace_periods(settings.soft_grace_period))
    stated = [Threshold(signal=s, value=value) for s, value in _statements("evictionHard", settings.hard)]
    for signal, value in _statements("evictionSoft", settings.soft):
        if signal not in graces:
            message = f"grace period must be specified for the soft eviction threshold {signal}"
            raise ThresholdError("evictionSoftGracePeriod", message)
        stated.append(Threshold(signal=signal, value=value, grace_period_s=graces[signal]))
    return tuple(msgspec.structs.replace(each, min_reclaim=reclaims.get(each.signal)) for each in stated)


def with_allocatable(thresholds: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """The thresholds, and each hard one of memory for all pods together, too (addAllocatableThresholds): for a node on
    which one cgroup limits all pods (enforceNodeAllocatable)."""
    every = tuple(thresholds)
    copies = (
        msgspec.structs.replace(each, signal=Signal.ALLOCATABLE_MEMORY_AVAILABLE)
        for each in every
        if each.signal is Signal.MEMORY_AVAILABLE and each.is_hard
    )
    return (*every, *copies)


def _statements(setting: str, statements: Mapping[str, str]) -> Iterator[tuple[Signal, ThresholdValue]]:
    """parseThresholdStatements, without those that are switched off."""
    for name, text in statements.items():
        signal = _signal(setting, name)
        if text in _IGNORED:
            continue
        value = _value(setting, name, text)
        if value.quantity and parse_amount(value.quantity).value <= 0:
            raise ThresholdError(setting, f"eviction threshold {name} must be positive: {value.quantity}")
        if not 0.0 <= value.percentage <= 1.0:
            raise ThresholdError(setting, f"eviction percentage threshold {name} must be 0% to 100%: {text}")
        yield signal, value


def _grace_periods(statements: Mapping[str, str]) -> Iterator[tuple[Signal, float]]:
    """parseGracePeriods, in seconds."""
    setting = "evictionSoftGracePeriod"
    for name, text in statements.items():
        signal = _signal(setting, name)
        try:
            grace_s = parse_duration(text)
        except ValueError as error:
            raise ThresholdError(setting, f"grace period of {name}: {error}") from error
        if grace_s < 0.0:
            raise ThresholdError(setting, f"invalid eviction grace period of {name}: {text}, must be a positive value")
        yield signal, grace_s


def _minimum_reclaims(statements: Mapping[str, str]) -> Iterator[tuple[Signal, ThresholdValue]]:
    """parseMinimumReclaims."""
    setting = "evictionMinimumReclaim"
    for name, text in statements.items():
        signal, value = _signal(setting, name), _value(setting, name, text)
        if value.quantity and parse_amount(value.quantity).value < 0:
            raise ThresholdError(setting, f"negative eviction minimum reclaim specified for {name}")
        if not value.quantity and value.percentage <= 0.0:
            raise ThresholdError(setting, f"eviction percentage minimum reclaim {name} must be positive: {text}")
        yield signal, value


def _signal(setting: str, name: str) -> Signal:
    try:
        return Signal(name)
    except ValueError:
        known = ", ".join(Signal)
        raise ThresholdError(setting, f"unsupported eviction signal {name}; known are {known}") from None


def _value(setting: str, name: str, text: str) -> ThresholdValue:
    try:
        if text.endswith("%"):
            return ThresholdValue(percentage=parse_percentage(text))
        return ThresholdValue(quantity=str(parse_amount(text)))
    except (QuantityError, ValueError) as error:
        raise ThresholdError(setting, f"{name}: {text!r}: {error}") from error


def parse_percentage(text: str) -> float:
    """``10%`` is 0.1, as Go's float32: each step rounded once. Raises ValueError."""
    number = text.rstrip("%")
    if len(number) > MAX_QUANTITY_CHARS or not _NUMBER.fullmatch(number):
        raise ValueError("must be a finite number of per cent")
    return _float32(Fraction(_float32(Fraction(number))) / 100)


def _float32(exact: Fraction) -> float:
    """The nearest one, of two that are as near the even one. Raises ValueError for a number that is too large."""
    try:
        [bits] = struct.unpack("<I", struct.pack("<f", float(abs(exact))))
    except OverflowError as error:
        raise ValueError("must be a finite number of per cent") from error
    # Rounded by way of a float64, it may be the neighbour of the nearest one.
    near = [_of_bits(each) for each in (bits - 1, bits, bits + 1) if 0 <= each < _INFINITY_BITS]
    found, _ = min(near, key=lambda each: (abs(Fraction(each[0]) - abs(exact)), each[1] % 2))
    return -found if exact < 0 else found


def _of_bits(bits: int) -> tuple[float, int]:
    [value] = struct.unpack("<f", struct.pack("<I", bits))
    return value, bits
