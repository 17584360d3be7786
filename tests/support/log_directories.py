"""Log directories of pods that are gone, and one collection of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.host.clock import wall
from workers.logs import layout
from workers.logs.gc import TIMESTAMP_SLACK_S, Collected, collect
from workers.userns.unshare import Unshare

NOBODY = Unshare(podman="/nonexistent/podman")
UID = "0c3ad6a8-0000-4000-8000-000000000001"
OTHER = "other"
LATER_S = TIMESTAMP_SLACK_S + 1.0


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return made(tmp_path / "logs")


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    return made(tmp_path / "pods")


def made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def log_directory(logs: Path, uid: str = UID, *files: str) -> Path:
    """Log directory of a pod ``web`` with two lives of one container."""
    directory = layout.pod_directory(str(logs), "default", "web", uid)
    for name in files or ("main/0.log", "main/1.log", "main/1.log.20260101-000000.gz", "main/0.start-error"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("x")
    layout.monitor_pid_file(directory, 0).write_text("1")
    return directory


def look(logs: Path, pods: Path | str = "", *kept: str, listed_at: float | None = None) -> Collected:
    at = wall() + LATER_S if listed_at is None else listed_at
    return collect(str(logs), (str(pods), ""), kept.__contains__, at, NOBODY)
