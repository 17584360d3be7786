"""One round of the eviction manager after another: thresholds met, since when, conditions of the node.

Mirrors the first half of synchronize (pkg/kubelet/eviction/eviction_manager.go) and its helpers. Times are monotonic
seconds, those of observations epoch seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.k8s.eviction.observations import SignalObservations, thresholds_met
from ipc.k8s.eviction.signals import NodePressure, Signal, condition_of
from ipc.k8s.eviction.thresholds import Threshold

_FIRST: Final = (Signal.MEMORY_AVAILABLE, Signal.ALLOCATABLE_MEMORY_AVAILABLE)
"""Signals that are acted on before all others."""


class PressureState(msgspec.Struct, frozen=True, kw_only=True):
    """State that one round leaves to the next."""

    conditions: tuple[NodePressure, ...] = ()
    """Conditions that the node has."""
    conditions_last_observed: Mapping[NodePressure, float] = {}
    first_observed: Mapping[Threshold, float] = {}
    """Since when each threshold is met."""
    met: tuple[Threshold, ...] = ()
    """Thresholds that have been met for their grace period, and are not resolved."""
    observations: SignalObservations = {}


class Round(msgspec.Struct, frozen=True):
    """The state after a round, and the thresholds to act on, the most urgent first."""

    state: PressureState
    thresholds: tuple[Threshold, ...]


def next_round(
    before: PressureState,
    thresholds: Iterable[Threshold],
    observations: SignalObservations,
    transition_period_s: float,
    now: float,
) -> Round:
    """Thresholds and conditions after these observations. A threshold that was acted on stays met until its minimum
    reclaim is there, too."""
    met = merged(
        thresholds_met(thresholds, observations),
        thresholds_met(before.met, observations, enforce_min_reclaim=True),
    )
    since = first_observed(met, before.first_observed, now)
    last_observed = conditions_last_observed(conditions_of(met), before.conditions_last_observed, now)
    due = met_for_grace_period(since, now)
    state = PressureState(
        conditions=observed_since(last_observed, transition_period_s, now),
        conditions_last_observed=last_observed,
        first_observed=since,
        met=due,
        observations=observations,
    )
    return Round(state, most_urgent_first(with_new_figures(due, observations, before.observations)))


def merged(first: Iterable[Threshold], second: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """mergeThresholds."""
    return tuple(dict.fromkeys((*first, *second)))


def first_observed(
    met: Iterable[Threshold], before: Mapping[Threshold, float], now: float
) -> Mapping[Threshold, float]:
    """thresholdsFirstObservedAt."""
    return {threshold: before.get(threshold, now) for threshold in met}


def met_for_grace_period(since: Mapping[Threshold, float], now: float) -> tuple[Threshold, ...]:
    """thresholdsMetGracePeriod."""
    return tuple(threshold for threshold, at in since.items() if now - at >= threshold.grace_period_s)


def conditions_of(met: Iterable[Threshold]) -> tuple[NodePressure, ...]:
    """Conditions that these thresholds mean (nodeConditions)."""
    return tuple(dict.fromkeys(condition_of(threshold.signal) for threshold in met))


def conditions_last_observed(
    observed: Iterable[NodePressure], before: Mapping[NodePressure, float], now: float
) -> Mapping[NodePressure, float]:
    """nodeConditionsLastObservedAt."""
    return {**before, **dict.fromkeys(observed, now)}


def observed_since(
    last_observed: Mapping[NodePressure, float], period_s: float, now: float
) -> tuple[NodePressure, ...]:
    """Conditions that were observed within the period (nodeConditionsObservedSince)."""
    return tuple(sorted(condition for condition, at in last_observed.items() if now - at < period_s))


def with_new_figures(
    met: Iterable[Threshold], observations: SignalObservations, before: SignalObservations
) -> tuple[Threshold, ...]:
    """Thresholds whose signal was observed anew: nothing is evicted twice for the same figures
    (thresholdsUpdatedStats)."""
    return tuple(t for t in met if _is_new(t.signal, observations, before))


def _is_new(signal: Signal, observations: SignalObservations, before: SignalObservations) -> bool:
    now, last = observations.get(signal), before.get(signal)
    return now is not None and (last is None or not now.time or now.time > last.time)


def most_urgent_first(thresholds: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Memory first (byEvictionPriority)."""
    return tuple(sorted(thresholds, key=lambda threshold: threshold.signal not in _FIRST))
