"""Log directories that cannot be removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.host.clock import wall
from ipc.messages.base import EventReport
from ipc.messages.node_worker import CollectLogs, LogsCollected
from tests.podman_service import wait_until
from workers.logs import layout
from workers.logs.gc import TIMESTAMP_SLACK_S, Collected, LogGarbageCollector, collect
from workers.userns.unshare import Unshare

NOBODY = Unshare(podman="/nonexistent/podman")
UID = "0c3ad6a8-0000-4000-8000-000000000001"
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


# --- asked by the master -----------------------------------------------------------------------------------------


async def until(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, holds, 10.0, 0.01)


def request(*uids: str) -> CollectLogs:
    return CollectLogs(uids=uids, listed_at=wall() + LATER_S)


async def test_a_failure_that_stays_is_told_once(tmp_path: Path, pods: Path) -> None:
    logs = tmp_path / "logs"
    logs.write_text("no directory")
    told: list[EventReport] = []

    async def tell(report: EventReport | LogsCollected) -> None:
        assert isinstance(report, EventReport)
        told.append(report)

    garbage = LogGarbageCollector(str(logs), (str(pods),), "here", lambda uid: False, tell, NOBODY)
    looking = asyncio.create_task(garbage.collect())
    for _ in range(3):
        made(pods / UID)
        garbage.ask(request())
        await until(lambda: not list(pods.iterdir()))
    (event,) = told
    assert (event.reason, event.type, event.uid, event.name) == ("ContainerGCFailed", "Warning", "", "here")
    assert event.message == f"cannot look for what is left of pods in {logs}: Not a directory"
    logs.unlink()
    gone = log_directory(made(logs))
    garbage.ask(request())
    await until(lambda: not gone.exists())
    assert len(told) == 1
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
