"""A node worker on any runtime, and the master's end of its link."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.base import Shutdown
from ipc.link.messages.node_worker import (
    NodeWorkerCommand,
    NodeWorkerReport,
    Observation,
    Observe,
    Observed,
    Relisted,
)
from ipc.link.messages.pod_worker import SyncEffects
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from ipc.link.wire.channel import Channel
from tests.fakes.clock import SimClock
from tests.fakes.ownership import LABEL_KEY, signed_container, signed_pod
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import Runtime
from workers.node_worker import run_node_worker
from workers.userns.unshare import Unshare

SLOT = 0
DEADLINE_S = 600.0
IMAGE = "localhost/x:latest"
FOREVER = ("sleep", "1000000")
NEVER_S = 1e9
GROWN = 6
"""After so many quiet relists they are as rare as they get."""

T = TypeVar("T")


class Master:
    """Sends commands, keeps every report, reads the board."""

    def __init__(self, channel: Channel[NodeWorkerCommand, NodeWorkerReport], board: Board) -> None:
        self.channel = channel
        self.board = board
        self.reports: list[NodeWorkerReport] = []
        self._new = asyncio.Event()

    async def keep(self) -> None:
        async for report in self.channel:
            self.reports.append(report)
            self._new.set()

    def send(self, *commands: NodeWorkerCommand) -> None:
        for command in commands:
            self.channel.post(command)

    async def first(self, kind: type[T], holds: Callable[[T], bool] = lambda report: True, after: int = 0) -> T:
        """The first report of that kind for which the condition holds, from report number ``after`` on."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for report in self.reports[after:]:
                    if isinstance(report, kind) and holds(report):
                        return report
                self._new.clear()
                await self._new.wait()

    async def observation(
        self, uid: str, holds: Callable[[RuntimePodStatus], bool] = lambda status: True, after: int = 0
    ) -> Observation:
        """The first observation of a pod whose content satisfies the condition."""
        found: list[Observation] = []

        def is_it(report: Observed | Relisted) -> bool:
            news = report.observations if isinstance(report, Observed) else report.changed
            found[:] = [seen for seen in news if seen.uid == uid and holds(self.status(seen))]
            return bool(found)

        await self.first(Observed | Relisted, is_it, after)  # type: ignore[arg-type]
        return found[0]

    def status(self, seen: Observation) -> RuntimePodStatus:
        """Observation, from the message or the board as it is now."""
        if seen.status is not None:
            return seen.status
        status = self.row(seen.row)
        assert status is not None
        return status

    def row(self, number: int) -> RuntimePodStatus | None:
        """Status on a row, dated as readers date it."""
        row = self.board.read_pod(number)
        if row is None:
            return None
        status = msgspec.msgpack.decode(row.payload, type=RuntimePodStatus)
        assert status.uid == row.uid
        return msgspec.structs.replace(status, observed_at=row.observed_at)

    def count(self, kind: type[object]) -> int:
        return sum(isinstance(report, kind) for report in self.reports)


@asynccontextmanager
async def node_worker(
    runtime: Runtime,
    clock: Clock,
    *,
    instance: str = "one",
    relist_period_s: float = 10.0,
    quiet_relist_period_s: float = 300.0,
    pod_rows: int = 64,
    pod_row_bytes: int = 16 * 1024,
    pod_logs_dir: Path = Path("/nonexistent"),
    inspect_file: str = "",
    answers: asyncio.Event | None = None,
) -> AsyncIterator[Master]:
    """The worker's whole life; leaving the block shuts it down in order and hands on what it raised."""
    near, far = socket.socketpair()
    board = Board.create(worker_slots=1, pod_rows=pod_rows, pod_row_bytes=pod_row_bytes)
    settings = WorkerSettings(
        instance=instance,
        label_key=LABEL_KEY,
        node_name="here",
        podman_socket="",
        pod_logs_dir=str(pod_logs_dir),
        inspect_file=inspect_file,
        relist_period_s=relist_period_s,
        quiet_relist_period_s=quiet_relist_period_s,
    )
    context = ChildContext(
        slot=SLOT, incarnation=1, role=Role.NODE_WORKER, settings=settings, link=far, listen=None, board=board
    )
    writer = board.worker_writer(SLOT)
    writer.begin(1, 1)
    theirs: Channel[NodeWorkerReport, NodeWorkerCommand] = await Channel.open(far, NodeWorkerReport, NodeWorkerCommand)
    ours: Channel[NodeWorkerCommand, NodeWorkerReport] = await Channel.open(near, NodeWorkerCommand, NodeWorkerReport)
    master = Master(ours, board)
    worker = asyncio.create_task(
        run_node_worker(context, theirs, runtime, clock, writer, Unshare(), random.Random(1), answers)
    )
    keeping = asyncio.create_task(master.keep())
    try:
        yield master
        if not ours.closed:
            ours.post(Shutdown())
        async with asyncio.timeout(DEADLINE_S):
            await worker
    finally:
        for task in (worker, keeping):
            task.cancel()
        await asyncio.gather(worker, keeping, return_exceptions=True)
        for channel in (ours, theirs):
            channel.close()
            await channel.wait_closed()


class Host:
    """A fake Podman, the runtime that the node worker uses, and hands that make pods behind its back."""

    def __init__(self, latency_s: float = 0.001) -> None:
        self.clock = SimClock()
        self.podman = FakePodman(self.clock, images=[IMAGE])
        self.runtime = FakeRuntime(self.podman, "one", latency_s=latency_s)

    def now(self) -> float:
        return self.clock.now().mono

    def pod(self, uid: str, attempt: int = 0, **more: str) -> str:
        own = {**self.labels(uid), labels.ATTEMPT: str(attempt), **more}
        return self.podman.create_pod(signed_pod({"name": f"{uid}_{attempt}", "labels": own}))

    def container(self, pod: str, uid: str, name: str = "main", command: Sequence[str] = FOREVER, **more: str) -> str:
        own = {**self.labels(uid), labels.CONTAINER_NAME: name, **more}
        count = len(self.podman.containers)
        spec = {"name": f"{uid}-{name}-{count}", "image": IMAGE, "pod": pod, "labels": own, "command": list(command)}
        return self.podman.create_container(signed_container(spec))

    def running(self, uid: str, attempt: int = 0, command: Sequence[str] = FOREVER, *, leaves: bool = False) -> str:
        """A pod with one running container, whose end leaves processes if it is said: the container's id."""
        more = {labels.LEAVES_PROCESSES: "true"} if leaves else {}
        id = self.container(self.pod(uid, attempt), uid, command=command, **more)
        self.podman.start_container(id)
        return id

    def labels(self, uid: str) -> dict[str, str]:
        return {
            labels.INSTANCE: "one",
            labels.POD_UID: uid,
            labels.POD_NAME: f"name-{uid}",
            labels.POD_NAMESPACE: "default",
        }

    def calls(self, verb: str) -> int:
        return list(self.runtime.calls).count(verb)

    @asynccontextmanager
    async def worker(self, **settings: Any) -> AsyncIterator[Master]:
        """Booted: the first relist is over."""
        async with node_worker(self.runtime, self.clock, **settings) as master:
            await master.first(Relisted)
            yield master
        await self.runtime.close()


def to_list(*uids: str) -> Observe:
    """A request for pods of which more may have been touched than anybody knows."""
    return Observe(uids=uids, effects={uid: SyncEffects(unsure=True) for uid in uids})


async def asked(master: Master, uid: str) -> Any:
    """Ask for a pod of which anything may have been touched, and get the answer."""
    before = len(master.reports)
    master.send(to_list(uid))
    return await master.observation(uid, after=before)


async def gaps_between_relists(master: Master, count: int) -> list[float]:
    """Gaps between so many relists from now on."""
    before = len(master.reports)
    while sum(isinstance(report, Relisted) for report in master.reports[before:]) < count:
        await master.first(Relisted, after=len(master.reports))
    times = [report.started_at for report in master.reports if isinstance(report, Relisted)][-count - 1 :]
    return [later - earlier for earlier, later in pairwise(times)]
