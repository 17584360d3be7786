"""A child's life from its first line to its exit code, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.link.messages.base import Ready, Shutdown
from ipc.link.messages.pod_worker import PodWorkerCommand, PodWorkerReport
from ipc.link.wire.boot import EXIT_BOOT_ERROR
from ipc.link.wire.channel import Channel

WAIT_S = 20.0
"""Long enough for a Python to start on a busy machine."""
CHILD = """
import socket, sys
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from ipc.k8s.kubecontainer.label_key import LabelKey
from ipc.host.log.setup import LogTarget
from workers.main import main
settings = WorkerSettings(instance="t", label_key=LabelKey(secret=bytes(32), made_at=0.0), node_name="n",
                          podman_socket="/nowhere", pod_logs_dir="/nowhere",
                          log=LogTarget(sys.argv[2]), heartbeat_period_s=0.01)
context = ChildContext(slot=1, incarnation=3, role=Role.POD_WORKER, settings=settings,
                       link=socket.socket(fileno=int(sys.argv[1])), listen=None,
                       board=Board.create(worker_slots=2, pod_rows=1))
code = main(context)
row = context.board.read_worker(1)
print(open("/proc/self/comm").read().strip(), row.incarnation if row else "", bool(row and row.heartbeat))
sys.exit(code)
"""


class Child:
    def __init__(self, process: subprocess.Popen[str], link: socket.socket) -> None:
        self.process, self.link = process, link

    async def ended(self) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        out, err = await asyncio.to_thread(self.process.communicate, timeout=WAIT_S)
        return self.process.returncode, out, err


@contextlib.contextmanager
def child(log_format: str = "text") -> Iterator[Child]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(theirs.fileno()), log_format],
        pass_fds=[theirs.fileno()],
        cwd=Path(__file__).resolve().parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    with ours, process:
        try:
            yield Child(process, ours)
        finally:
            process.kill()


async def ready(made: Child) -> Channel[PodWorkerCommand, PodWorkerReport]:
    channel = await Channel.open(made.link, PodWorkerCommand, PodWorkerReport)
    assert await channel.receive() == Ready(pid=made.process.pid)
    return channel


async def test_a_worker_says_that_it_is_ready_and_ends_with_its_link() -> None:
    with child() as made:
        (await ready(made)).close()
        assert await made.ended() == (0, "rootlet-pods-1 3 True\n", "")


async def test_shutdown_ends_it() -> None:
    with child() as made:
        await (await ready(made)).send(Shutdown())
        assert (await made.ended())[0] == 0


async def test_sigterm_ends_it_and_ctrl_c_does_not() -> None:
    with child() as made:
        await ready(made)
        made.process.send_signal(signal.SIGINT)
        made.process.send_signal(signal.SIGTERM)
        assert (await made.ended())[0] == 0


async def test_sigabrt_shows_where_it_hangs() -> None:
    with child() as made:
        await ready(made)
        made.process.send_signal(signal.SIGABRT)
        code, _, err = await made.ended()
        assert code == -signal.SIGABRT
        assert "Fatal Python error: Aborted" in err
        assert 'workers/main.py"' in err


@pytest.mark.parametrize("log_format", ["xml"])
async def test_what_keeps_it_from_starting_is_said_and_has_an_exit_code_of_its_own(log_format: str) -> None:
    with child(log_format) as made:
        code, _, err = await made.ended()
        assert code == EXIT_BOOT_ERROR
        assert err.startswith("rootlet-pods-1: cannot start: ValueError: ")


async def test_a_link_that_carries_nonsense_is_the_end_with_a_reason() -> None:
    with child() as made:
        channel = await ready(made)
        made.link.send(b"\xff" * 64)
        code, _, err = await made.ended()
        assert code == 1
        assert "ProtocolError" in err
        channel.close()
