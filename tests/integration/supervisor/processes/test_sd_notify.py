"""Notifications of systemd, as its own socket receives them."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

import pytest

from supervisor.processes.sd_notify import Watchdog, notify, watchdog_timeout_s


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_systemd_hears_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    address = str(tmp_path / "notify") if kind == "file" else f"@rootlet-test-{os.getpid()}"
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as systemd:
        systemd.bind(address.replace("@", "\0"))
        assert notify("READY=1")
        assert systemd.recv(100) == b"READY=1"


def test_nobody_asked_or_nobody_listens_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    assert not notify("READY=1")


@pytest.mark.parametrize(
    ("environ", "timeout_s"),
    [
        ({}, 0.0),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, 0.0),
        ({"WATCHDOG_USEC": "0"}, 0.0),
        ({"WATCHDOG_USEC": "-1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({"WATCHDOG_USEC": "9" * 5000}, 0.0),
    ],
)
def test_systemd_watches_whom_it_names(environ: dict[str, str], timeout_s: float) -> None:
    assert watchdog_timeout_s(environ, 7) == timeout_s


@pytest.mark.parametrize("timeout_s", [2.0, 10.0, 60.0])
def test_a_loop_that_iterates_tells_it_within_half_the_timeout(timeout_s: float) -> None:
    told: list[float] = []
    watchdog = Watchdog(timeout_s, 1.0, lambda state: told.append(now))
    for tick in range(200):
        now = tick * 1.001
        watchdog.iterated(now)
    pauses = [after - before for before, after in itertools.pairwise(told)]
    assert max(pauses) <= max(timeout_s / 2, 1.0) + 0.01
    assert len(told) <= 2 * 200 / (timeout_s - 2) + 2 if timeout_s > 2 else len(told) == 200


def test_nobody_is_told_when_systemd_does_not_watch() -> None:
    told: list[str] = []
    Watchdog(0.0, 1.0, told.append).iterated(5.0)
    assert told == []
