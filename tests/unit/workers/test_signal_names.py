"""Signals as Podman shows them, by name."""

from __future__ import annotations

import pytest

from workers.signal_names import signal_name


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
    ],
)
def test_every_way_to_write_a_signal(value: int | str, name: str) -> None:
    assert signal_name(value) == name
