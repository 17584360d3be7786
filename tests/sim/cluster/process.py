"""The process that speaks to the cluster: its real code on the simulated loop, as mortal as any worker."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

from ipc.host.clock import Clock
from ipc.nodestatus.images import StoredImage
from ipc.shm.board import Board
from ipc.wire.boot import Role, WorkerSettings
from tests.sim.children import Child
from tests.sim.runtime import SimPodman
from workers.cluster import agent
from workers.cluster.node import observer
from workers.prober.manager import Attempt
from workers.stats.machine import read_machine, read_versions


class ClusterChild(Child):
    """One incarnation of it."""

    def _main(
        self,
        podman: SimPodman,
        attempt: Attempt,
        board: Board,
        clock: Clock,
        settings: WorkerSettings,
        seed: int,
    ) -> Coroutine[Any, Any, Any]:
        context = self._context(Role.CLUSTER, settings, board)
        return agent.run_cluster(context, cast(Any, self), clock, cast(Any, None))


async def _no_images(_: str) -> tuple[StoredImage, ...]:
    return ()


@contextmanager
def machine_installed() -> Iterator[None]:
    """Read the machine once, and not for every node of every seed."""
    machine, versions = read_machine(), read_versions()
    with (
        patch.object(agent, "list_images", _no_images),
        patch.object(observer, "read_machine", lambda: machine),
        patch.object(observer, "read_versions", lambda: versions),
    ):
        yield
