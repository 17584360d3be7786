"""The agent's workers: their real code on the simulated loop, each incarnation with links of its own, each mortal."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.v1.event import Event
from ipc.link.messages.api_server import EventChanged, PackedEventChanged
from ipc.link.messages.pod_worker import CancelSync, SyncPod
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from supervisor.config.settings import WorkersSettings
from supervisor.processes.worker_pool import NODE_SLOT
from tests.fakes.dialer import FakeDialer
from tests.fakes.steps_here import StepsHere
from tests.sim.link import Mailbox
from tests.sim.loop import NOBODY, OWNER
from tests.sim.runtime import SimPodman, SimRuntime
from tests.sim.trace import Trace
from workers.node_worker import run_node_worker
from workers.pod_worker import run_pod_worker
from workers.prober.manager import Attempt

REQUEST: Final[contextvars.ContextVar[SyncPod | None]] = contextvars.ContextVar("REQUEST", default=None)
"""The sync on whose behalf something is done: every task of a sync is made in the context in which it arrived."""
HUNG_S: Final = WorkersSettings().heartbeat_timeout_s
"""After which a worker that hangs is killed (heartbeats)."""
LINK_DELAY_S: Final = 0.01
SLOW_LINK_S: Final = 1.0
LAST_WORDS_LATE: Final = 0.3
"""Part of the deaths after which what the dead has sent arrives when its successor works already."""
LAST_WORDS_S: Final = 5.0
SLOW_LINK: Final = 0.02
"""Part of the messages that take longer: somebody did not get the CPU."""


def _received(message: Any) -> Any:
    """The message as its receiver decodes it. Of all that the master sends only a packed event is another there."""
    if isinstance(message, PackedEventChanged):
        event = msgspec.msgpack.decode(message.event, type=Event)
        return EventChanged(resource_version=message.resource_version, event=event)
    return message


class Child:
    """One incarnation of one slot."""

    def __init__(
        self,
        slot: int,
        incarnation: int,
        rng: random.Random,
        trace: Trace,
        *,
        hear: Callable[[Child, Any], None],
        begin: Callable[[Child, SyncPod], None],
        died: Callable[[Child], None],
    ) -> None:
        """``hear`` gets what it sends, ``begin`` each sync in the moment in which it begins, ``died`` its death."""
        self.current_pod = 0
        """`pod_digest` of the pod in whose step it hangs or has died."""
        self.slot = slot
        self.incarnation = incarnation
        self.name = f"{'node' if slot == NODE_SLOT else f'pods-{slot}'}.{incarnation}"
        self.alive = True
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.cancelled: set[tuple[str, int]] = set()
        """Syncs (uid, generation) that were told to stop."""
        self.to_child: Mailbox[Any] = Mailbox(self._arrived, lambda: _link_delay_s(rng))
        self.to_master: Mailbox[Any] = Mailbox(lambda message: hear(self, message), lambda: _link_delay_s(rng))
        self._rng = rng
        self._trace = trace
        self._begin = begin
        self._died = died
        self._inbox: deque[Any] = deque()
        self._news = asyncio.Event()
        self._running = asyncio.Event()
        """Not hanging."""
        self._running.set()

    @property
    def request(self) -> SyncPod | None:
        return REQUEST.get()

    def live(
        self,
        podman: SimPodman,
        attempt: Attempt,
        board: Board,
        clock: Clock,
        settings: WorkerSettings,
        seed: int,
    ) -> None:
        """Begin. Everything it does from now on can be taken away at once."""
        context = NOBODY.copy()
        context.run(OWNER.set, self)
        main = context.run(self._main, podman, attempt, board, clock, settings, seed)
        task = asyncio.get_running_loop().create_task(main, context=context)
        task.add_done_callback(self._ended)

    def die(self, why: str) -> None:
        """Kill -9. Of what it has sent, some arrives."""
        if not self.alive:
            return
        self._trace.note(f"{self.name} dies: {why}")
        self.alive = False
        self._running.set()
        self.to_master.cut(self._rng.randint(0, len(self.to_master)))
        if self._rng.random() < LAST_WORDS_LATE:
            self.to_master.hold(self._rng.uniform(0.0, LAST_WORDS_S))
        for task in tuple(self.tasks):
            task.cancel()
        self._died(self)

    def hang(self) -> None:
        self._trace.note(f"{self.name} hangs")
        self._running.clear()

    def strike(self, pod: int, *, hangs: bool) -> None:
        """Strike a worker, which hangs or dies in a step for that pod."""
        self.current_pod = pod
        if hangs:
            self.hang()
            asyncio.get_running_loop().call_later(HUNG_S, self.abort, context=NOBODY)
        else:
            self.die("struck")

    def abort(self) -> None:
        """Kill it, if it hangs still."""
        if self.hangs:
            self.die("no heartbeat")

    def go_on(self) -> None:
        """One that was struck never does."""
        if self.current_pod:
            return
        if self.alive and self.hangs:
            self._trace.note(f"{self.name} goes on")
        self._running.set()

    @property
    def hangs(self) -> bool:
        return not self._running.is_set()

    async def turn(self) -> None:
        await self._running.wait()
        if not self.alive:
            raise asyncio.CancelledError

    # --- its end of the link (an `ipc.link.wire.channel.Channel`, as far as workers use it) ---

    async def send(self, message: Any, *, lazy: bool = False) -> None:
        """Every message takes some time here, whether it may or not."""
        await self.turn()
        self.to_master.post(message)

    def __aiter__(self) -> Child:
        return self

    async def __anext__(self) -> Any:
        while not self._inbox:
            self._news.clear()
            await self._news.wait()
        await self.turn()
        message = self._inbox.popleft()
        if isinstance(message, SyncPod):
            self.cancelled.discard((message.uid, message.generation))
            REQUEST.set(message)
            self._begin(self, message)
            await self.turn()
        if isinstance(message, CancelSync):
            self.cancelled.add((message.uid, message.generation))
        return message

    def _arrived(self, message: Any) -> None:
        self._inbox.append(_received(message))
        self._news.set()

    # --- its life ---

    def _main(
        self,
        podman: SimPodman,
        attempt: Attempt,
        board: Board,
        clock: Clock,
        settings: WorkerSettings,
        seed: int,
    ) -> Coroutine[Any, Any, None]:
        role = Role.NODE_WORKER if self.slot == NODE_SLOT else Role.POD_WORKER
        context = self._context(role, settings, board)
        writer = board.worker_writer(self.slot)
        writer.begin(1, self.incarnation)
        runtime, channel = SimRuntime(podman, self), cast(Any, self)
        rng = random.Random(seed)
        if role is Role.NODE_WORKER:
            return run_node_worker(context, channel, runtime, clock, writer, StepsHere(), rng)
        return run_pod_worker(context, channel, runtime, clock, writer, FakeDialer(), attempt, rng, StepsHere())

    def _context(self, role: Role, settings: WorkerSettings, board: Board) -> ChildContext:
        return ChildContext(
            slot=self.slot,
            incarnation=self.incarnation,
            role=role,
            settings=settings,
            link=cast(Any, None),
            listen=None,
            board=board,
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self.alive:
            error = None if task.cancelled() else task.exception()
            self._trace.broke(f"{self.name} ended by itself: {error!r}")
        elif not task.cancelled():
            task.exception()


def _link_delay_s(rng: random.Random) -> float:
    return rng.uniform(0.0005, SLOW_LINK_S if rng.random() < SLOW_LINK else LINK_DELAY_S)
