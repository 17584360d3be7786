"""Signals by name and number."""

from __future__ import annotations

import signal

import pytest

from ipc.api.validation.probes import STOP_SIGNALS
from workers.signals import RTMAX, RTMIN, signal_number


def test_every_stop_signal_of_v1_has_a_number() -> None:
    numbers = {name: signal_number(name) for name in STOP_SIGNALS}
    assert all(0 < number <= RTMAX for number in numbers.values())
    real_time = [name for name in STOP_SIGNALS if name.startswith("SIGRT")]
    assert len({numbers[name] for name in real_time}) == len(real_time) == RTMAX - RTMIN + 1


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SIGTERM", signal.SIGTERM),
        ("SIGCLD", signal.SIGCHLD),
        ("SIGIOT", signal.SIGABRT),
        ("SIGRTMIN", 34),
        ("SIGRTMIN+15", 49),
        ("SIGRTMAX-14", 50),
        ("SIGRTMAX", 64),
    ],
)
def test_numbers(name: str, number: int) -> None:
    assert signal_number(name) == number


@pytest.mark.parametrize(
    "name", ["", "TERM", "15", "SIGRTMIN-1", "SIGRTMAX+1", "SIGRTMIN+", "SIGRTMIN+31", "SIGTERM+1"]
)
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no such signal"):
        signal_number(name)
