"""Marks on real processes: what forks away from a command is still found."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from ipc.host.clock import monotonic, wall
from workers.exec.tags import OVERDUE_S, ProcessTag, kill, parse_tag
from workers.proc.rlimit_tag import locks_limit, parse_locks_limit

LOCKS = 10
"""RLIMIT_LOCKS; the resource module has no name for it."""
DEADLINE_S = 30.0


def begin(mark: ProcessTag, *command: str) -> subprocess.Popen[bytes]:
    limit = mark.rlimit()
    child = subprocess.Popen(command or ("sleep", "1000"))
    resource.prlimit(child.pid, LOCKS, (limit["soft"], limit["hard"]))
    return child


@pytest.fixture
def mark() -> Iterator[ProcessTag]:
    """Nobody else's, and nothing of it is left."""
    made = ProcessTag(os.getpid(), int(monotonic() * 1e6) % 2**32, int(wall()) + 1000)
    yield made
    kill({made}, (), wall())


def test_a_mark_is_read_as_it_was_written(mark: ProcessTag) -> None:
    child = begin(mark)
    assert parse_tag(locks_limit(child.pid)) == mark
    child.kill()
    child.wait()


@pytest.mark.parametrize(
    "row",
    [
        "",
        "Max file locks            unlimited            unlimited            locks     \n",
        "Max file locks            7                    4611686018427387904  locks     \n",
        "Max file locks            7                    unlimited            locks     \n",
    ],
)
def test_others_have_none(row: str) -> None:
    assert parse_tag(parse_locks_limit(f"Limit\n{row}Max pending signals 1 1 signals\n".encode())) is None


def test_marks_fit_into_limits() -> None:
    limit = ProcessTag(2**22, 2**40 + 5, 2**32 - 1).rlimit()
    assert 0 < limit["soft"] <= limit["hard"] < 2**63


def test_only_the_commands_with_the_mark_are_killed(mark: ProcessTag) -> None:
    other = ProcessTag(mark.owner, mark.number + 1, mark.deadline)
    children = [begin(mark), begin(other), subprocess.Popen(["sleep", "1000"])]
    assert kill({mark}, (), wall()) == {mark}
    assert children[0].wait(DEADLINE_S) == -9
    assert children[1].poll() is children[2].poll() is None
    assert kill({mark}, (), wall()) == frozenset()
    for child in children:
        child.kill()
        child.wait()


def test_a_zombie_counts_as_ended(mark: ProcessTag) -> None:
    child = begin(mark)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert kill({mark}, (), wall()) == frozenset()
    child.wait()


def test_the_spared_is_spared(mark: ProcessTag) -> None:
    child = begin(mark)
    assert kill({mark}, (child.pid,), wall()) == frozenset()
    assert child.poll() is None
    child.kill()
    child.wait()


def test_a_daemon_is_found(mark: ProcessTag, tmp_path: Path) -> None:
    """Another parent, another session, another group."""
    script = f"sleep 0.5; (setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 1000' &) ; true"
    begin(mark, "sh", "-c", script).wait()
    daemon = int(_until_written(tmp_path / "pid"))
    assert kill({mark}, (), wall()) == {mark}
    end = monotonic() + DEADLINE_S
    while Path(f"/proc/{daemon}").exists() and b"State:\tZ" not in Path(f"/proc/{daemon}/status").read_bytes():
        assert monotonic() < end
        sleep(0.01)


def _until_written(file: Path) -> str:
    end = monotonic() + DEADLINE_S
    while not file.exists() or not file.read_text():
        assert monotonic() < end
        sleep(0.01)
    return file.read_text()


@pytest.fixture
def overdue(mark: ProcessTag) -> Iterator[ProcessTag]:
    """By the real clock: at any other time commands of others would be overdue too."""
    made = ProcessTag(mark.owner, mark.number, int(wall() - OVERDUE_S) - 1)
    yield made
    kill({made}, (), wall())


def test_what_is_overdue_goes_if_an_oci_runtime_still_waits_for_it(
    mark: ProcessTag, overdue: ProcessTag, tmp_path: Path
) -> None:
    runtime = tmp_path / "crun"
    runtime.symlink_to("/bin/sleep")
    waiting, in_time = begin(overdue, str(runtime), "1000"), begin(mark, str(runtime), "1000")
    command = begin(overdue)
    assert overdue in kill((), (), wall())
    assert waiting.wait(DEADLINE_S) == command.wait(DEADLINE_S) == -9
    assert in_time.poll() is None
    in_time.kill()
    in_time.wait()


def test_daemons_of_a_command_that_has_ended_in_time_stay(overdue: ProcessTag) -> None:
    daemon = begin(overdue)
    assert overdue not in kill((), (), wall())
    assert daemon.poll() is None
    daemon.kill()
    daemon.wait()
