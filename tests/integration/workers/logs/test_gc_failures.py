"""Log directories that cannot be removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ipc.host.clock import wall
from ipc.link.messages.base import EventReport
from ipc.link.messages.node_worker import CollectLogs, LogsCollected
from tests.support.log_directories import LATER_S, NOBODY, UID, log_directory, made
from tests.support.podman_service import wait_until
from workers.logs.gc import LogGarbageCollector

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
