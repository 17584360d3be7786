"""The child manager carries out what the worker pool decides of the agent's children, and reports what they do."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, assert_never

from ipc.host.clock import Clock
from ipc.host.log.entry import line_about
from ipc.link.messages.api_server import WorkerInfo
from ipc.link.messages.base import Ready, Shutdown
from ipc.link.messages.catalogue import ChildCommand, ChildEvent, ChildReport
from ipc.link.messages.zygote import Exited, Spawned, SpawnFailed, ZygoteReport
from ipc.link.shm.board import Board
from ipc.link.wire.boot import EXIT_IDLE, EXIT_RESPAWN, Role, WorkerSettings
from supervisor.processes.links import Links
from supervisor.processes.scheduling import STOPPED, scheduling_of
from supervisor.processes.worker_pool import (
    CHECK_PERIOD_S,
    AwaitDemand,
    ChildSpec,
    GiveUp,
    KillChild,
    PoolCommand,
    RespawnLater,
    ShutDownChild,
    SpawnChild,
    WorkerPool,
)

AFTER_S: Final = 0.01
"""A check that is made because something is due then comes by so much later, in seconds."""
LEAVES: Final = frozenset({EXIT_RESPAWN, EXIT_IDLE})
"""Exit codes of children that have left on their own."""

log = logging.getLogger(__name__)


class ChildEvents(Protocol):
    """Events of the children, for the master."""

    def on_child_up(self, slot: int, incarnation: int, *, running: bool) -> None:
        """A child's first message came. Not ``running``: it was asked to leave meanwhile."""

    def on_child_down(self, slot: int, *, orderly: bool, current_pod: int) -> None:
        """A child was reaped, and no incarnation follows it yet. ``current_pod``: as `ipc.link.shm.board.WorkerRow` has
        it."""

    def on_children_changed(self) -> None:
        """A child has been reaped, and what follows from it is under way."""

    def on_message(self, slot: int, message: ChildEvent) -> None:
        """From the newest incarnation."""

    def on_fatal(self, reason: str) -> None:
        """The agent cannot go on without its children."""


class ChildManager:
    """Owns the pool and the links. A message is for, or from, the newest incarnation of a slot."""

    def __init__(
        self,
        pool: WorkerPool,
        events: ChildEvents,
        board: Board,
        clock: Clock,
        zygote: socket.socket,
        zygote_pid: int,
        listening: Mapping[Role, Sequence[socket.socket]],
        settings: Callable[[], WorkerSettings],
    ) -> None:
        self._pool = pool
        self._events = events
        self._board = board
        self._clock = clock
        self._zygote_pid = zygote_pid
        self._links = Links(zygote, listening, self, settings)
        self._all_gone = asyncio.Event()
        self._is_ending = False

    # --- commands of the master ----------------------------------------------------------------------------------

    def start(self) -> None:
        self._links.start()
        self._carry_out(self._pool.start(self._now))

    def expect_end(self) -> None:
        """The agent ends: from now on it is no news that a child does."""
        self._is_ending = True

    def send(self, slot: int, message: ChildCommand) -> None:
        """Send a command to the slot's newest incarnation, if it has a link."""
        self._links.send(slot, self._pool.incarnation(slot), message)

    def declare(self, specs: Iterable[ChildSpec]) -> None:
        """Replace the set of children."""
        self._carry_out(self._pool.declare(specs, self._now))

    def end(self, slot: int, within_s: float) -> None:
        """Ask the child to leave within so many seconds; its next incarnation follows its exit."""
        self._carry_out(self._pool.end(slot, self._now, within_s))

    def retire(self, slot: int, within_s: float) -> None:
        """Ask the child to leave within so many seconds; no incarnation follows."""
        self._carry_out(self._pool.retire(slot, self._now, within_s))

    def replace(self, slot: int, why: str) -> None:
        """Kill its child with SIGKILL, which counts as a death; the next incarnation follows."""
        self._carry_out(self._pool.replace(slot, why))

    def explain(self, slot: int) -> None:
        """The death that was reported just now is a pod's doing: it does not count for the restart intensity."""
        self._pool.explain(slot)

    def check_heartbeats(self) -> None:
        rows = {slot: self._board.read_worker(slot) for slot in self._pool.slots()}
        beats = {slot: (row.incarnation, row.heartbeat) for slot, row in rows.items() if row is not None}
        now = self._now
        self._continue_zygote()
        found = {slot: scheduling_of(pid) for slot, pid in self._pool.suspects(beats, now).items()}
        looks = {slot: look for slot, look in found.items() if look is not None}
        self._carry_out(self._pool.check_heartbeats(beats, now, looks))
        if (soon_s := self._pool.next_check_s(beats, now)) < CHECK_PERIOD_S:
            asyncio.get_running_loop().call_later(soon_s + AFTER_S, self.check_heartbeats)

    def _continue_zygote(self) -> None:
        """Without it no child is begun, ended or reaped. It is a child of this process: its pid is nobody else's."""
        look = scheduling_of(self._zygote_pid)
        if look is not None and look.state == STOPPED:
            log.warning("signal %d to the zygote: it was stopped", signal.SIGCONT)
            os.kill(self._zygote_pid, signal.SIGCONT)

    def slot_named(self, name: str) -> int | None:
        return self._pool.slot_named(name)

    def role(self, slot: int) -> Role:
        return self._pool.role(slot)

    def can_restart(self, slot: int) -> bool:
        """Whether no start or stop is under way in the slot."""
        return self._pool.can_restart(slot)

    def age_s(self, slot: int) -> float:
        """Seconds since the running incarnation was asked for; 0.0 when none runs."""
        return self._pool.age_s(slot, self._now)

    def infos(self, pods_per_slot: Mapping[int, int]) -> tuple[WorkerInfo, ...]:
        """Rows of all children, for `get workers`."""
        return self._pool.infos(pods_per_slot)

    async def shut_down(self, grace_s: float, spare: int | None) -> None:
        """Ask all children to finish their step and leave, then SIGTERM, then SIGKILL, each with ``grace_s`` seconds.

        ``spare`` is the slot that goes last: it serves the others."""
        for slot in self._pool.slots():
            self.send(slot, Shutdown())
        for last in (spare, None):
            for signum in (signal.SIGTERM, signal.SIGKILL):
                await self._end_all(signum, last, grace_s)
        await self._links.close()

    async def _end_all(self, signum: int, spare: int | None, grace_s: float) -> None:
        self._all_gone.clear()
        self._carry_out(self._pool.stop(signum, spare))
        try:
            async with asyncio.timeout(grace_s):
                while not self._pool.all_gone(spare):
                    await self._all_gone.wait()
                    self._all_gone.clear()
        except TimeoutError:
            log.warning("children still there %g s after signal %d", grace_s, signum)

    # --- commands of the pool ------------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now().mono

    def _carry_out(self, commands: list[PoolCommand]) -> None:
        for command in commands:
            match command:
                case SpawnChild():
                    self._spawn_child(command)
                case RespawnLater(slot, after_s):
                    log.info("slot %d is respawned in %.1f s", slot, after_s, extra=line_about(slot=slot))
                    asyncio.get_running_loop().call_later(after_s, self._respawn, slot)
                case AwaitDemand(slot, role):
                    self._links.await_demand(slot, role)
                case KillChild():
                    level = logging.DEBUG if self._is_ending else logging.WARNING
                    told = line_about(slot=command.slot)
                    log.log(level, "signal %d to slot %d: %s", command.signum, command.slot, command.why, extra=told)
                    self._links.signal(command)
                case ShutDownChild(slot, incarnation):
                    log.info("slot %d incarnation %d is asked to leave", slot, incarnation, extra=line_about(slot=slot))
                    self._links.send(slot, incarnation, Shutdown())
                case GiveUp(reason):
                    self._events.on_fatal(reason)
                case _:
                    assert_never(command)

    def _spawn_child(self, command: SpawnChild) -> None:
        try:
            self._links.spawn(command)
        except OSError as error:
            why = f"no file descriptors for it: {error.strerror or error}"
            self._on_spawn_failed(SpawnFailed(slot=command.spec.slot, incarnation=command.incarnation, message=why))

    def _respawn(self, slot: int) -> None:
        self._carry_out(self._pool.respawn(slot, self._now))

    # --- events of the links (LinkEvents) ------------------------------------------------------------------------

    def on_zygote_report(self, report: ZygoteReport) -> None:
        match report:
            case Spawned(slot=slot, incarnation=incarnation, pid=pid):
                self._pool.spawned(slot, incarnation, pid)
            case SpawnFailed():
                self._on_spawn_failed(report)
            case Exited():
                self._on_exited(report)
            case _:
                assert_never(report)

    def _on_spawn_failed(self, report: SpawnFailed) -> None:
        self._links.crash_trace(report.slot, report.incarnation)
        what = f"slot {report.slot} incarnation {report.incarnation}"
        log.warning("%s cannot be spawned: %s", what, report.message, extra=line_about(slot=report.slot))
        self._carry_out(self._pool.spawn_failed(report.slot, report.incarnation))
        self._all_gone.set()

    def _on_exited(self, report: Exited) -> None:
        is_ending = self._is_ending
        orderly = is_ending or self._pool.is_leaving(report.slot)
        stack = self._links.crash_trace(report.slot, report.incarnation)
        if not is_ending:
            what = f"slot {report.slot} incarnation {report.incarnation} (pid {report.pid})"
            is_no_news = report.exit_code in LEAVES or (orderly and report.exit_code == 0)
            level = logging.INFO if is_no_news else logging.WARNING
            below = f"; it was here:\n{stack}" if stack else ""
            log.log(level, "%s ended with %d%s", what, report.exit_code, below, extra=line_about(slot=report.slot))
        current_pod = self._current_pod(report.slot, report.incarnation)
        self._events.on_child_down(report.slot, orderly=orderly, current_pod=current_pod)
        self._carry_out(self._pool.exited(report, self._now))
        self._all_gone.set()
        self._events.on_children_changed()

    def _current_pod(self, slot: int, incarnation: int) -> int:
        """Digest of the pod in whose step that incarnation has ended; 0 when it has never written its row."""
        row = self._board.read_worker(slot)
        return row.current_pod if row is not None and row.incarnation == incarnation else 0

    def on_zygote_gone(self) -> None:
        self._pool.lost()
        self._all_gone.set()
        if not self._is_ending:
            self._events.on_fatal("the zygote is gone")

    def on_broken_link(self, slot: int, incarnation: int, why: str) -> None:
        if incarnation == self._pool.incarnation(slot):
            self.replace(slot, why)

    def on_internal_error(self, error: BaseException) -> None:
        """Every reaction to a message runs in the task that serves its link, so that an error there is fatal to the
        agent."""
        self._events.on_fatal(f"internal error: {error!r}")

    def on_demand(self, slot: int) -> None:
        self._carry_out(self._pool.demanded(slot, self._now))

    def on_message(self, slot: int, incarnation: int, message: ChildReport) -> None:
        if incarnation != self._pool.incarnation(slot):
            return
        if isinstance(message, Ready):
            self._pool.ready(slot, message.pid, self._now)
            self._events.on_child_up(slot, incarnation, running=self._pool.is_running(slot))
        else:
            self._events.on_message(slot, message)
