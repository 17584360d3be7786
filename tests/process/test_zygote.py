"""Real forks: spawning, reaping, signals, and what remains when the master or the zygote dies."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipc.link.messages.zygote import Exited, SignalChild, Spawn, Spawned, ZygoteCommand, ZygoteReport
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from ipc.link.wire.packets import PacketLink
from supervisor.processes.zygote import start_zygote
from tests.fakes.ownership import LABEL_KEY
from tests.support.podman_service import wait_until

pytestmark = pytest.mark.process

DEADLINE_S = 30.0
SETTINGS = WorkerSettings(
    instance="test", label_key=LABEL_KEY, node_name="n", podman_socket="/nowhere", pod_logs_dir="/nowhere"
)


def echo_worker(context: ChildContext) -> int:
    """Says who it is on the board, then repeats what it hears; ends with what follows ``exit``."""
    context.board.worker_writer(context.slot).begin(os.getpid(), context.incarnation)
    with context.link as link:
        while heard := link.recv(100):
            if heard.startswith(b"exit"):
                return int(heard[4:])
            if heard == b"raise":
                raise RuntimeError("as asked")
            link.sendall(heard + (b" and listens" if context.listen else b""))
    return 0


class Zygote:
    def __init__(self, tmp_path: Path) -> None:
        self.board = Board.create(worker_slots=8, pod_rows=1)
        self.crashes = (tmp_path / "crashes").open("wb", buffering=0)
        self.socket_path = tmp_path / "admin.sock"
        self.socket_path.touch()
        sock, self.pid = start_zygote(self.board, lambda: echo_worker, [self.socket_path])
        self.link: PacketLink[ZygoteCommand, ZygoteReport] = PacketLink(sock, ZygoteReport)

    def spawn(
        self, slot: int, *, incarnation: int = 1, listen: socket.socket | None = None
    ) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE_S)
        fds = [theirs.fileno(), self.crashes.fileno()] + ([listen.fileno()] if listen else [])
        with theirs:
            self.link.send(Spawn(slot=slot, incarnation=incarnation, role=Role.POD_WORKER, settings=SETTINGS), fds)
        report = self.hear()
        assert isinstance(report, Spawned)
        assert (report.slot, report.incarnation) == (slot, incarnation)
        return ours, report.pid

    def hear(self) -> ZygoteReport:
        return hear(self.link)


def hear(link: PacketLink[ZygoteCommand, ZygoteReport]) -> ZygoteReport:
    ready, _, _ = select.select([link.fileno()], [], [], DEADLINE_S)
    assert ready, "the zygote said nothing in time"
    received = link.receive()
    assert received is not None
    return received[0]


@pytest.fixture
def zygote(tmp_path: Path) -> Iterator[Zygote]:
    made = Zygote(tmp_path)
    yield made
    made.link.close()
    made.crashes.close()
    if Path("/proc", str(made.pid)).exists():
        assert os.waitstatus_to_exitcode(os.waitpid(made.pid, 0)[1]) == 0


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, DEADLINE_S, 0.01)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_child_gets_its_link_its_board_and_reports_its_exit(zygote: Zygote) -> None:
    link, pid = zygote.spawn(3)
    link.sendall(b"hello")
    assert link.recv(100) == b"hello"
    row = zygote.board.read_worker(3)
    assert row is not None
    assert (row.pid, row.incarnation) == (pid, 1)
    link.sendall(b"exit7")
    assert zygote.hear() == Exited(slot=3, incarnation=1, pid=pid, exit_code=7)
    link.close()


def test_the_admin_socket_rides_along(zygote: Zygote) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        link, _ = zygote.spawn(1, listen=listening)
        with link:
            link.sendall(b"api")
            assert link.recv(100) == b"api and listens"


def test_an_exception_in_a_child_is_its_exit_and_nobody_elses(zygote: Zygote) -> None:
    link, pid = zygote.spawn(3)
    other, _ = zygote.spawn(4)
    with link, other:
        link.sendall(b"raise")
        assert zygote.hear() == Exited(slot=3, incarnation=1, pid=pid, exit_code=1)
        other.sendall(b"still")
        assert other.recv(100) == b"still"


def test_a_signal_reaches_only_the_incarnation_that_it_names(zygote: Zygote) -> None:
    link, pid = zygote.spawn(3, incarnation=5)
    with link:
        zygote.link.send(SignalChild(slot=3, incarnation=4, signum=signal.SIGKILL))
        link.sendall(b"alive")
        assert link.recv(100) == b"alive"
        zygote.link.send(SignalChild(slot=3, incarnation=5, signum=signal.SIGKILL))
        assert zygote.hear() == Exited(slot=3, incarnation=5, pid=pid, exit_code=-signal.SIGKILL)


def test_the_first_program_runs_once_and_before_the_childrens_code_is_loaded(tmp_path: Path) -> None:
    out = tmp_path / "begun"
    first = Spawn(slot=2, incarnation=1, role=Role.EXEC, argv=("sh", "-c", "echo x >> $OUT"), env={"OUT": str(out)})

    def load() -> Callable[[ChildContext], int]:
        until(out.exists)
        return echo_worker

    sock, pid = start_zygote(Board.create(worker_slots=8, pod_rows=1), load, [], None, first)
    link: PacketLink[ZygoteCommand, ZygoteReport] = PacketLink(sock, ZygoteReport)
    try:
        again = Spawn(slot=2, incarnation=2, role=Role.EXEC, argv=first.argv, env=first.env)
        for command in (first, again):
            link.send(command)
        reports = [hear(link) for _ in range(4)]
        assert [report.incarnation for report in reports if isinstance(report, Spawned)] == [1, 2]
        assert {report.incarnation for report in reports if isinstance(report, Exited)} == {1, 2}
        assert out.read_text() == "x\nx\n"
    finally:
        link.close()
        os.waitpid(pid, 0)


def test_a_program_of_its_own_is_signalled_as_a_group(zygote: Zygote) -> None:
    argv = ("sh", "-c", "sleep 1000 & echo $! > $OUT; wait")
    out = zygote.socket_path.with_name("pid")
    zygote.link.send(Spawn(slot=2, incarnation=1, role=Role.EXEC, argv=argv, env={"OUT": str(out)}))
    spawned = zygote.hear()
    assert isinstance(spawned, Spawned)
    until(lambda: out.exists() and out.read_text().strip().isdigit())
    grandchild = int(out.read_text())
    zygote.link.send(SignalChild(slot=2, incarnation=1, signum=signal.SIGTERM))
    assert zygote.hear() == Exited(slot=2, incarnation=1, pid=spawned.pid, exit_code=-signal.SIGTERM)
    until(lambda: is_gone(grandchild))


def test_children_go_when_the_zygote_is_killed(zygote: Zygote) -> None:
    link, pid = zygote.spawn(3)
    os.kill(zygote.pid, signal.SIGKILL)
    os.waitpid(zygote.pid, 0)
    assert zygote.link.receive() is None
    assert link.recv(100) == b""
    until(lambda: is_gone(pid))
    link.close()


def test_everything_goes_when_the_master_lets_go_of_the_link(zygote: Zygote) -> None:
    link, pid = zygote.spawn(3)
    zygote.link.close()
    os.waitpid(zygote.pid, 0)
    assert is_gone(pid)
    assert not zygote.socket_path.exists()
    link.close()


def test_the_socket_file_goes_with_a_killed_master(tmp_path: Path) -> None:
    """A master of its own process, killed: the zygote clears up behind it."""
    reader, writer = os.pipe()
    master = os.fork()
    if master == 0:
        made = Zygote(tmp_path)
        _, child = made.spawn(3)
        os.write(writer, f"{made.pid} {child}".encode())
        signal.pause()
        os._exit(0)
    zygote_pid, child_pid = map(int, os.read(reader, 100).split())
    os.kill(master, signal.SIGKILL)
    os.waitpid(master, 0)
    until(lambda: is_gone(zygote_pid) and is_gone(child_pid))
    assert not (tmp_path / "admin.sock").exists()
    os.close(reader)
    os.close(writer)
