"""What systemd is told, as its own socket receives it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from supervisor.processes.sd_notify import notify


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
