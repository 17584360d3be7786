"""The node's slots over real processes: kill -9 of a holder gives back what it held."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator

import pytest

from ipc.link.shm.mutation_slots import MutationSlots, SlotMember
from tests.support.podman_service import wait_until

pytestmark = pytest.mark.process

DEADLINE_S = 30.0


@pytest.fixture
def shared() -> Iterator[MutationSlots]:
    slots = MutationSlots.create(slots=2, members=3)
    yield slots
    slots.close()


def fork(lifecycle: Callable[[], None]) -> tuple[int, int]:
    """A child that does this, says so by a byte on the pipe, and then sits there; its pid and the pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lifecycle()
            os.write(writer, b".")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    assert select.select([reader], [], [], DEADLINE_S)[0], "the child did not get so far"
    return pid, reader


def end(child: tuple[int, int]) -> None:
    os.kill(child[0], signal.SIGKILL)
    os.waitpid(child[0], 0)
    os.close(child[1])


def test_kill_9_gives_back_slots_and_ends_the_wait(shared: MutationSlots) -> None:
    def take_all() -> None:
        member = shared.member(1)
        assert member.acquire()
        assert member.acquire()
        member.set_waiting(True)

    child, ours = fork(take_all), shared.member(0)
    assert not ours.acquire()
    assert ours.others_wait()
    end(child)
    assert not ours.others_wait()
    assert ours.acquire()
    assert ours.acquire()


def test_a_bell_is_heard_in_another_process(shared: MutationSlots) -> None:
    ours = shared.member(0)
    assert ours.acquire()
    assert ours.acquire()

    def take_when_rung() -> None:
        member = shared.member(2)
        member.set_waiting(True)
        child_waits[1].close()
        select.select([member.wakeup], [], [], DEADLINE_S)
        assert member.acquire()

    reader, writer = os.pipe()
    child_waits = (os.fdopen(reader, "rb"), os.fdopen(writer, "wb"))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            take_when_rung()
            code = 0
        finally:
            os._exit(code)
    child_waits[1].close()
    with child_waits[0]:
        assert child_waits[0].read() == b""
    ours.release()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_forked_stranger_holds_nothing(shared: MutationSlots) -> None:
    """A process that a worker forks has none of its slots once it is another program: the file closes on exec."""
    member: SlotMember = shared.member(0)
    assert member.acquire()
    pid = os.fork()
    if pid == 0:
        os.execvp("sleep", ["sleep", "60"])
    try:
        wait_until(lambda: _name(pid) == "sleep", DEADLINE_S)
        member.close()
        other = shared.member(1)
        assert other.acquire()
        assert other.acquire()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _name(pid: int) -> str:
    with open(f"/proc/{pid}/comm") as comm:
        return comm.read().strip()
