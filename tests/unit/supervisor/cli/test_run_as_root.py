"""`rootlet run` by root: only when it is asked for by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.link.wire.boot import WorkerMain
from supervisor.agent_command import ROOT
from supervisor.cli.configuration import EXIT_CONFIG
from supervisor.cli.main import run_cli


def no_worker() -> WorkerMain:
    raise AssertionError("nothing is started")


def test_root_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.yaml")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert run_cli(["run", "--config", missing], no_worker) == EXIT_CONFIG
    assert capsys.readouterr() == ("", f"rootlet: {ROOT}\n")
    assert run_cli(["run", "--allow-root", "--config", missing], no_worker) == EXIT_CONFIG
    allowed = capsys.readouterr().err
    assert "missing.yaml" in allowed, "it goes on to the configuration"
    assert ROOT not in allowed
