"""Log directories of pods that are gone: the program inside Podman's namespaces removes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.host.clock import SystemClock, wall
from ipc.link.messages.node_worker import CollectLogs, Track
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.support.log_directories import LATER_S, OTHER, log_directory, look
from tests.support.node_worker import node_worker
from tests.support.podman_service import wait_until


def test_one_that_cannot_be_removed_stops_no_other(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, goes = log_directory(logs), log_directory(logs, OTHER)

    real = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "1.log" and os.readlink(f"/proc/self/fd/{dir_fd}").startswith(str(stuck)):
            raise PermissionError(13, "Permission denied", path)
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr("workers.fs.tree_removal.os.unlink", refuse)
    found = look(logs)
    assert found.removed == (str(goes),)
    file = f"{stuck.name}/main/1.log"
    assert found.failures[0].startswith(f"cannot remove {stuck}, whose pod is gone: '{file}': Permission denied; ")
    assert [path for path in stuck.rglob("*") if path.is_file()] == [stuck / "main" / "1.log"]


# --- asked by the master -----------------------------------------------------------------------------------------


async def until(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, holds, 10.0, 0.01)


def request(*uids: str) -> CollectLogs:
    return CollectLogs(uids=uids, listed_at=wall() + LATER_S)


async def test_the_node_worker_spares_whom_the_master_named_and_whom_it_tracks(logs: Path) -> None:
    clock = SystemClock()
    runtime = FakeRuntime(FakePodman(clock), "one")
    directories = {uid: log_directory(logs, uid) for uid in ("named", "tracked", "gone")}
    async with node_worker(runtime, clock, pod_logs_dir=logs) as master:
        master.send(Track(uid="tracked", row=0), request("named"))
        await until(lambda: not directories["gone"].exists())
        assert directories["named"].is_dir()
        assert directories["tracked"].is_dir()
    await runtime.close()
