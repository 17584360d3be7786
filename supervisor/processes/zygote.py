"""The only caller of fork(): a small loop without an event loop, threads or clients of anything.

It is forked from the master before the master has a loop or a thread, waits for `Spawn` packets, forks the child that
they describe, reaps by pidfd and reports. When the master is gone it takes the children down and leaves; when it dies
itself, PDEATHSIG takes them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, assert_never

import msgspec

from ipc.host import clock
from ipc.host.process.core_dumps import forbid_core_dumps
from ipc.host.process.prctl import set_parent_death_signal, set_process_name
from ipc.link.messages.catalogue import ZYGOTE
from ipc.link.messages.zygote import Exited, SignalChild, Spawn, Spawned, SpawnFailed, ZygoteCommand, ZygoteReport
from ipc.link.metrics.rootlet import CPU_OF_ENDED
from ipc.link.metrics.table import LAYOUT
from ipc.link.shm.board import Board
from ipc.link.shm.mutation_slots import MutationSlots
from ipc.link.wire.boot import ChildContext, LoadWorkerMain, Role, WorkerMain
from ipc.link.wire.packets import DescriptorsLost, PacketLink

TERM_WINDOW_S = 5.0
"""How long children may take to leave after the master died, before SIGKILL."""

CHILD_SIGNALS = (signal.SIGHUP, signal.SIGTERM)
"""Ignored by the zygote, default in its children."""

Link = PacketLink[ZygoteReport, ZygoteCommand]


class Child(msgspec.Struct, frozen=True):
    slot: int
    incarnation: int
    role: Role
    pid: int
    pidfd: int

    def send_signal(self, signum: int) -> None:
        """Send a signal to the process, or to its whole group if it is a program of its own: Podman has helpers."""
        with contextlib.suppress(ProcessLookupError):
            if self.role is Role.EXEC:
                os.killpg(self.pid, signum)
            else:
                signal.pidfd_send_signal(self.pidfd, signum)


def start_zygote(
    board: Board,
    load: LoadWorkerMain,
    sockets: Sequence[Path],
    mutation_slots: MutationSlots | None = None,
    first: Spawn | None = None,
) -> tuple[socket.socket, int]:
    """Fork the zygote; returns the master's end of its link (SOCK_SEQPACKET) and its pid.

    What children run is imported there, by ``load``: the master needs none of it. When the zygote outlives the master
    it removes ``sockets``. ``first``: another program, which begins while all that is imported; the master asks for it
    all the same, and gets the report.

    Must be called before the master has an event loop or a second thread, and before it has imported what nobody else
    needs: a page that exists by then and is written to later is kept twice.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _make_pages_shareable()  # modules and settings: to look for garbage takes 10 ms and finds none
    pid = os.fork()
    if pid == 0:
        ours.close()
        _run_and_exit(lambda: _Zygote(theirs, board, load, sockets, mutation_slots, first).run())
    theirs.close()
    return ours, pid


def _make_pages_shareable() -> None:
    """Freeze what there is, so that the pages of a forked process stay shared with this one."""
    if sys.version_info < (3, 12):
        # The cache of types counts references to names. Each child would drop them one by one, on as many pages.
        sys._clear_type_cache()
    gc.freeze()


class _Zygote:
    def __init__(
        self,
        sock: socket.socket,
        board: Board,
        load: LoadWorkerMain,
        sockets: Sequence[Path],
        mutation_slots: MutationSlots | None,
        first: Spawn | None,
    ) -> None:
        self._link: Link = PacketLink(sock, ZYGOTE.commands)
        self._board = board
        self._call_slots = mutation_slots
        self._load = load
        self._worker_main: WorkerMain
        self._sockets = sockets
        self._first = first
        """Answered before it is asked for."""
        self._children: dict[int, Child] = {}
        """By pidfd."""
        self._file_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        """Limit of open files that every child starts with, however few are left to the zygote by then."""
        self._poll = select.poll()

    def run(self) -> int:
        os.setpgid(0, 0)  # a Ctrl-C at the terminal is the master's business
        for signum in (signal.SIGINT, *CHILD_SIGNALS):
            signal.signal(signum, signal.SIG_IGN)
        set_process_name("rootlet-zygote")
        self._poll.register(self._link.fileno(), select.POLLIN)
        if self._first is not None:
            self._spawn(self._first, [])
        self._worker_main = self._load()
        gc.collect()
        _make_pages_shareable()
        while self._serve_once():
            pass
        self._end_children()
        for path in self._sockets:
            path.unlink(missing_ok=True)  # the master may have been killed; its successor waits for our end
        return 0

    def _serve_once(self) -> bool:
        """Wait for commands and exits, and serve them; False when the master is gone."""
        ready = [fd for fd, _ in self._poll.poll()]
        for fd in ready:
            if fd in self._children:
                self._reap(self._children[fd])
        if self._link.fileno() not in ready:
            return True
        try:
            received = self._link.receive()
        except DescriptorsLost as lost:
            if isinstance(lost.message, Spawn):  # nothing else carries any
                self._report_spawn_failed(lost.message, str(lost))
            return True
        if received is None:
            return False
        command, fds = received
        try:
            self._handle(command, fds)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _handle(self, command: ZygoteCommand, fds: list[int]) -> None:
        match command:
            case Spawn() if command == self._first:
                self._first = None
            case Spawn():
                self._spawn(command, fds)
            case SignalChild():
                self._signal(command)
            case _:
                assert_never(command)

    def _signal(self, command: SignalChild) -> None:
        for child in list(self._children.values()):
            if (child.slot, child.incarnation) == (command.slot, command.incarnation):
                child.send_signal(command.signum)

    def _spawn(self, spawn: Spawn, fds: list[int]) -> None:
        """Fork a child and report it; SpawnFailed without room for a process or for its pidfd."""
        try:
            child = self._fork(spawn, fds)
        except OSError as error:
            self._report_spawn_failed(spawn, str(error))
            return
        self._children[child.pidfd] = child
        self._poll.register(child.pidfd, select.POLLIN)
        self._report(Spawned(slot=spawn.slot, incarnation=spawn.incarnation, pid=child.pid))

    def _fork(self, spawn: Spawn, fds: list[int]) -> Child:
        """Raises OSError; then nothing of it is left."""
        zygote_pid = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, CHILD_SIGNALS)  # an early one waits for the child's handling
        try:
            pid = os.fork()
            if pid == 0:
                _run_and_exit(lambda: self._run_child(spawn, fds, zygote_pid))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, CHILD_SIGNALS)
        if spawn.role is Role.EXEC:
            with contextlib.suppress(PermissionError, ProcessLookupError):  # it has done so itself already
                os.setpgid(pid, pid)
        try:
            return Child(spawn.slot, spawn.incarnation, spawn.role, pid, os.pidfd_open(pid))
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _run_child(self, spawn: Spawn, fds: list[int], zygote_pid: int) -> int:
        """In the child: close what is the zygote's, then run the role or the program; the exit code."""
        set_parent_death_signal(signal.SIGKILL, zygote_pid)
        self._link.close()
        for pidfd in self._children:
            os.close(pidfd)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(self._file_limit, hard), hard))
        for signum in CHILD_SIGNALS:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CHILD_SIGNALS)
        if spawn.role is Role.EXEC:
            return _exec(spawn)
        forbid_core_dumps()
        assert spawn.settings is not None
        link_fd, crash_fd, *listen_fds = fds
        context = ChildContext(
            slot=spawn.slot,
            incarnation=spawn.incarnation,
            role=spawn.role,
            settings=spawn.settings,
            link=socket.socket(fileno=link_fd),
            listen=socket.socket(fileno=listen_fds[0]) if listen_fds else None,
            ports=tuple(socket.socket(fileno=fd) for fd in listen_fds[1:]),
            board=self._board,
            mutation_slots=self._call_slots,
            crash_fd=crash_fd,
        )
        return self._worker_main(context)

    def _reap(self, child: Child) -> None:
        _, status, used = os.wait4(child.pid, 0)
        # Nobody else writes to the row of a slot without a process.
        self._board.metrics.row(child.slot)[LAYOUT.cell(CPU_OF_ENDED)] += used.ru_utime + used.ru_stime
        self._poll.unregister(child.pidfd)
        del self._children[child.pidfd]
        os.close(child.pidfd)
        self._report(
            Exited(
                slot=child.slot,
                incarnation=child.incarnation,
                pid=child.pid,
                exit_code=os.waitstatus_to_exitcode(status),
            )
        )

    def _report_spawn_failed(self, spawn: Spawn, why: str) -> None:
        self._report(SpawnFailed(slot=spawn.slot, incarnation=spawn.incarnation, message=why))

    def _report(self, report: ZygoteReport) -> None:
        """A master that is gone is noticed at the next receive."""
        with contextlib.suppress(ConnectionError):
            self._link.send(report)

    def _end_children(self) -> None:
        """Send SIGTERM, wait for at most `TERM_WINDOW_S`, send SIGKILL; every child is reaped."""
        self._poll.unregister(self._link.fileno())
        deadline = clock.monotonic() + TERM_WINDOW_S
        for child in self._children.values():
            child.send_signal(signal.SIGTERM)
        while self._children and clock.monotonic() < deadline:
            for fd, _ in self._poll.poll(max(0.0, deadline - clock.monotonic()) * 1000):
                self._reap(self._children[fd])
        for child in list(self._children.values()):
            child.send_signal(signal.SIGKILL)
            self._reap(child)


def _exec(spawn: Spawn) -> int:
    """Become another program in a process group of its own."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    environ = {**os.environ, **spawn.env}
    # Podman's service is the only such program. Only its process imports what starts commands.
    from supervisor.processes.pause_process import revive

    if done := revive(spawn.argv[0], environ):
        print(done, file=sys.stderr, flush=True)
    os.execvpe(spawn.argv[0], spawn.argv, environ)


def _run_and_exit(main: Callable[[], int]) -> NoReturn:
    """Run a forked process and end it with ``os._exit``: nothing of the parent's stack may run on."""
    code = 1
    try:
        code = main()
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
