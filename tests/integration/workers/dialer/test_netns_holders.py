"""Pidfds of infra containers: looked up once, never another process's, and not kept for longer than they are of use."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.open_files import open_files, open_files_before
from workers.dialer import netns_holders
from workers.dialer.netns_holders import AnotherProcess, InfraProcesses
from workers.proc.procfs import start_ticks


@pytest.fixture
def infras() -> Iterator[InfraProcesses]:
    made = InfraProcesses()
    yield made
    made.forget_all()


@contextlib.contextmanager
def process() -> Iterator[int]:
    """Pid of a process; it ends with the context."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def pid_of(pidfd: int) -> int:
    """-1: it has ended."""
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pid:")).split()[1])


def test_each_is_looked_up_once(infras: InfraProcesses) -> None:
    with process() as one, process() as other:
        pidfds = [infras.pidfd(pid, start_ticks(pid)) for pid in (one, other, one, other)]
        assert [pid_of(pidfd) for pidfd in pidfds] == [one, other, one, other]
        assert pidfds[:2] == pidfds[2:]


def test_another_process_is_refused(infras: InfraProcesses) -> None:
    with process() as pid:
        before = open_files_before()
        for ticks in (start_ticks(pid) - 1, 0):
            with pytest.raises(AnotherProcess):
                infras.pidfd(pid, ticks)
        assert open_files() == before
    with pytest.raises(ProcessLookupError):
        infras.pidfd(pid, 1)


def test_what_has_ended_is_forgotten_with_the_next_one(infras: InfraProcesses) -> None:
    before = open_files_before()
    for _ in range(3):
        with process() as pid:
            assert pid_of(infras.pidfd(pid, start_ticks(pid))) == pid
        assert open_files() == before + 1


def test_there_is_a_most(infras: InfraProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns_holders, "MAX_PROCESSES", 2)
    with process() as one, process() as two, process() as three:
        before = open_files_before()
        for _ in range(3):
            for pid in (one, two, three):
                assert pid_of(infras.pidfd(pid, start_ticks(pid))) == pid
        assert open_files() == before + 2
        infras.forget_all()
        assert open_files() == before
