"""Signals by name and number."""

from __future__ import annotations

import signal

import pytest

from ipc.k8s.api.validation.pods.probes import STOP_SIGNALS
from workers.proc.signal_names import REAL_TIME_MAX, REAL_TIME_MIN, signal_name, signal_number


def test_every_stop_signal_of_v1_has_a_number() -> None:
    numbers = {name: signal_number(name) for name in STOP_SIGNALS}
    assert all(0 < number <= REAL_TIME_MAX for number in numbers.values())
    real_time = [name for name in STOP_SIGNALS if name.startswith("SIGRT")]
    assert len({numbers[name] for name in real_time}) == len(real_time) == REAL_TIME_MAX - REAL_TIME_MIN + 1


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


def test_a_numbers_name_has_that_number() -> None:
    for number in {signal_number(name) for name in STOP_SIGNALS}:
        assert signal_number(signal_name(number)) == number


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (15, "SIGTERM"),
        (3, "SIGQUIT"),
        ("15", "SIGTERM"),
        ("TERM", "SIGTERM"),
        ("SIGTERM", "SIGTERM"),
        (34, "SIGRTMIN"),
        (37, "SIGRTMIN+3"),
        (49, "SIGRTMIN+15"),
        (50, "SIGRTMAX-14"),
        (64, "SIGRTMAX"),
        ("37", "SIGRTMIN+3"),
        ("RTMIN+3", "SIGRTMIN+3"),
        (0, ""),
        (65, ""),
        (-1, ""),
        ("", ""),
        ("9" * 5000, ""),
        ("\u0661\u0665", ""),
    ],
)
def test_every_way_to_write_a_signal(value: int | str, name: str) -> None:
    assert signal_name(value) == name
