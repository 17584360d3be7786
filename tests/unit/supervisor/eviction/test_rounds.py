"""Rounds of eviction, one after another; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

from ipc.k8s.eviction.observations import SignalObservation
from ipc.k8s.eviction.signals import NodePressure, Signal
from ipc.k8s.eviction.thresholds import Threshold, ThresholdValue
from supervisor.eviction.rounds import PressureState, next_round

MEMORY = Threshold(signal=Signal.MEMORY_AVAILABLE, value=ThresholdValue(quantity="100"))
DISK = Threshold(signal=Signal.NODEFS_AVAILABLE, value=ThresholdValue(quantity="100"))


def seen(time: float, **available: int) -> dict[Signal, SignalObservation]:
    return {Signal[name]: SignalObservation(left, 1000, time) for name, left in available.items()}


def test_the_same_figures_count_once() -> None:
    first = next_round(PressureState(), [MEMORY], seen(1.0, MEMORY_AVAILABLE=1), 60.0, 10.0)
    assert first.thresholds == (MEMORY,)
    again = next_round(first.state, [MEMORY], seen(1.0, MEMORY_AVAILABLE=1), 60.0, 20.0)
    assert again.thresholds == ()
    assert again.state.met == (MEMORY,)
    newer = next_round(again.state, [MEMORY], seen(2.0, MEMORY_AVAILABLE=1), 60.0, 30.0)
    assert newer.thresholds == (MEMORY,)


def test_memory_comes_first() -> None:
    found = next_round(PressureState(), [DISK, MEMORY], seen(1.0, MEMORY_AVAILABLE=1, NODEFS_AVAILABLE=1), 60.0, 10.0)
    assert found.thresholds == (MEMORY, DISK)
    assert found.state.conditions == (NodePressure.DISK, NodePressure.MEMORY)


def test_a_signal_that_is_not_known_meets_nothing() -> None:
    found = next_round(PressureState(), [DISK, MEMORY], seen(1.0, MEMORY_AVAILABLE=500), 60.0, 10.0)
    assert (found.thresholds, found.state.conditions) == ((), ())
