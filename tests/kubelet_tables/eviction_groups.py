"""Adapters of the groups about eviction: thresholds, observations, ranking, messages, admission."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ipc.api.quantity import parse_amount
from ipc.eviction.signals import Signal
from ipc.eviction.thresholds import (
    EvictionSettings,
    Threshold,
    ThresholdError,
    ThresholdValue,
    parse_percentage,
    parse_thresholds,
    with_allocatable,
)
from tests.kubelet_tables.later import Result
from tests.kubelet_tables.translate import Json


def _parse_threshold_config(case: Json) -> Result:
    settings = EvictionSettings(
        hard=case["eviction_hard"],
        soft=case["eviction_soft"],
        soft_grace_period=case["eviction_soft_grace_period"],
        minimum_reclaim=case["eviction_min_reclaim"],
    )
    expected = case["expect_err"], _as_set(map(threshold, case["expected"]))
    try:
        found = parse_thresholds(settings, enforce_node_allocatable=case["allocatable_config"])
    except ThresholdError:
        return expected, (True, set())
    return expected, (False, _as_set(found))


def _add_allocatable_thresholds(case: Json) -> Result:
    return _as_set(map(threshold, case["expected"])), _as_set(with_allocatable(map(threshold, case["thresholds"])))


def _parse_percentage(case: Json) -> Result:
    expected = case["expect_err"], case["expected"]
    try:
        return expected, (False, parse_percentage(case["input"]))
    except ValueError:
        return expected, (True, 0)


def _compare_threshold_value(case: Json) -> Result:
    return case["expected"], value(case["a"]) == value(case["b"])


def threshold(data: Json) -> Threshold:
    """Of a case."""
    return Threshold(
        signal=Signal(data["signal"]),
        value=value(data["value"]),
        grace_period_s=data["grace_period_s"],
        min_reclaim=value(data["min_reclaim"]) if data["min_reclaim"] is not None else None,
    )


def value(data: Json) -> ThresholdValue:
    """Of a case."""
    quantity = data["quantity"]
    return ThresholdValue(quantity=str(parse_amount(quantity)) if quantity else "", percentage=data["percentage"])


def _as_set(thresholds: Iterable[Threshold]) -> set[tuple[object, ...]]:
    """Shares are rounded: the cases have a few digits of a float32."""
    return {(t.signal, _rounded(t.value), t.grace_period_s, _rounded(t.min_reclaim)) for t in thresholds}


def _rounded(stated: ThresholdValue | None) -> tuple[str, float] | None:
    return (stated.quantity, round(stated.percentage, 6)) if stated is not None else None


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "eviction_parse_threshold_config": _parse_threshold_config,
    "eviction_add_allocatable_thresholds": _add_allocatable_thresholds,
    "eviction_parse_percentage": _parse_percentage,
    "eviction_compare_threshold_value": _compare_threshold_value,
}
