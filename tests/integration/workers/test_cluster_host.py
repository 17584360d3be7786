"""The cluster's part of the node worker: imported where there is one, and told all that the master has said."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ipc.link.messages.api_server import FeedSynced, PodGone
from ipc.link.messages.cluster import ClusterCommand, ClusterReport, PodsTaken
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role
from ipc.link.wire.cluster_settings import ClusterSettings
from tests.fakes.clock import SimClock
from tests.sim.worker_settings import worker_settings
from workers.cluster_host import ClusterHost

DEADLINE_S = 30.0
AGENT = "workers.cluster.agent"
GONE = PodGone(uid="early", resource_version=1)
LOADED = """
import sys, workers.main
ROOMS = ("workers.cluster.", "workers.kubeclient", "workers.certificates")
print([name for name in sys.modules if name.startswith(ROOMS)])
"""


class _Agent:
    """Notes what it is told."""

    told: list[ClusterCommand]
    runs: asyncio.Event

    def __init__(self, *_: object) -> None:
        self.told = _Agent.told = []

    def take(self, command: ClusterCommand) -> None:
        self.told.append(command)

    async def run(self) -> None:
        self.runs.set()
        await asyncio.Event().wait()


async def _send(_: ClusterReport) -> None:
    pass


def _context(directory: Path, cluster: ClusterSettings | None) -> ChildContext:
    settings = msgspec.structs.replace(worker_settings(directory), cluster=cluster)
    board = Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=1024)
    return ChildContext(
        slot=0, incarnation=1, role=Role.NODE_WORKER, settings=settings, link=cast(Any, None), listen=None, board=board
    )


def test_a_worker_without_a_cluster_imports_nothing_of_one() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_without_a_cluster_there_is_nothing_to_run(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await ClusterHost(_context(tmp_path, None), SimClock(), _send).run()


async def test_what_the_master_says_during_the_import_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, AGENT, cast(types.ModuleType, types.SimpleNamespace(ClusterAgent=_Agent)))
    _Agent.runs = asyncio.Event()
    host = ClusterHost(_context(tmp_path, ClusterSettings(kubeconfig="", pki_dir="")), SimClock(), _send)
    host.take(GONE)
    host.take(FeedSynced())
    running = asyncio.create_task(host.run())
    async with asyncio.timeout(DEADLINE_S):
        await _Agent.runs.wait()
    host.take(PodsTaken())
    assert _Agent.told == [GONE, FeedSynced(), PodsTaken()]
    running.cancel()
