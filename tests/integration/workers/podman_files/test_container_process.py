"""Owners of pids, on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.host.clock import wall
from tests.support.open_files import open_files, open_files_before
from tests.support.podman_service import wait_until
from tests.support.runtime_values import inspected
from workers.podman_files.container_process import (
    START_SLACK_S,
    is_exiting,
    is_process_of,
    open_process,
    start_ticks_of,
)
from workers.podman_files.monitor import has_monitor, monitor_words, recorded_end, will_record
from workers.proc import procfs

ID = "5619b1a64b4a9392e42f6c5da3acab914f88f81c83ff719235e3ce71096f4c40"
AS_CONMON = "sleep 1000 & echo $!; wait"
DEADLINE_S = 30.0


@pytest.fixture
def monitored() -> Iterator[tuple[int, int]]:
    """Pids of a monitor and of its container's process."""
    command = ["conmon", "-c", AS_CONMON, "-c", ID, "-u", ID]
    with subprocess.Popen(command, executable="/bin/sh", stdout=subprocess.PIPE, text=True) as conmon:
        assert conmon.stdout is not None
        pid = int(conmon.stdout.readline())
        yield conmon.pid, pid
        for each in (pid, conmon.pid):
            os.kill(each, signal.SIGKILL)


def test_the_monitors_child_is_the_container(monitored: tuple[int, int]) -> None:
    conmon, pid = monitored
    # The clock was set back since: by its dates alone it would be a stranger.
    container = inspected(ID, pid=pid, conmon_pid=conmon, started_at=wall() - 10_000)
    assert has_monitor(container.process)
    assert is_process_of(container)
    pidfd = open_process(container)
    assert pidfd is not None
    os.close(pidfd)


def test_when_a_process_was_started(monitored: tuple[int, int]) -> None:
    conmon, pid = monitored
    ticks = procfs.start_ticks(pid)
    assert 0 < procfs.start_ticks(conmon) <= ticks
    assert start_ticks_of(inspected(ID, pid=pid, conmon_pid=conmon)) == ticks
    stranger = inspected(ID.replace("5", "6"), pid=pid, conmon_pid=conmon, started_at=1.0)
    assert start_ticks_of(stranger) == 0


def test_a_process_that_is_gone_was_never_started() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert procfs.start_ticks(process.pid) == 0
    assert start_ticks_of(inspected(ID, pid=0)) == 0


def test_whose_end_is_under_way(sleeper: subprocess.Popen[bytes]) -> None:
    shown = inspected(ID, pid=sleeper.pid)
    assert not is_exiting(shown)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert is_exiting(shown), "nobody has waited for it yet"
    sleeper.wait()
    assert is_exiting(shown), "nothing of it is left"


def test_a_monitor_of_another_container_is_none(monitored: tuple[int, int]) -> None:
    conmon, pid = monitored
    other = inspected(ID.replace("5", "6"), pid=pid, conmon_pid=conmon, started_at=wall() - 10_000)
    assert not has_monitor(other.process)
    assert not is_process_of(other)


def test_a_pid_of_a_younger_process_was_used_again(sleeper: subprocess.Popen[bytes]) -> None:
    before = open_files_before()
    began_at = procfs.boot_time() + procfs.start_ticks(sleeper.pid) / procfs.TICKS_PER_S
    reused = inspected(ID, pid=sleeper.pid, conmon_pid=sleeper.pid, started_at=began_at - START_SLACK_S - 1)
    assert not has_monitor(reused.process)
    assert open_process(reused) is None
    assert open_files() == before


def test_without_a_monitor_what_is_not_younger_is_the_container(sleeper: subprocess.Popen[bytes]) -> None:
    container = inspected(ID, pid=sleeper.pid, conmon_pid=1, started_at=wall())
    pidfd = open_process(container)
    assert pidfd is not None
    os.close(pidfd)


def test_a_cgroup_with_the_id_needs_no_dates(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    read = procfs.read_whole

    def with_cgroup(pid: int, name: str) -> str:
        return f"0::/user.slice/libpod-{ID}.scope/container\n" if name == "cgroup" else read(pid, name)

    monkeypatch.setattr(procfs, "read_whole", with_cgroup)
    assert is_process_of(inspected(ID, pid=sleeper.pid, conmon_pid=1, started_at=0.0))


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1])
def test_nobody_is_no_process(pid: int) -> None:
    assert open_process(inspected(ID, pid=pid)) is None


def test_one_that_has_ended_is_none(sleeper: subprocess.Popen[bytes]) -> None:
    container = inspected(ID, pid=sleeper.pid, conmon_pid=os.getpid(), started_at=wall())
    sleeper.kill()
    sleeper.wait()
    assert not is_process_of(container)
    assert open_process(container) is None


@pytest.fixture
def noting(tmp_path: Path) -> Iterator[int]:
    """The pid of a monitor that notes ends in ``tmp_path``."""
    options = ["-c", "while :; do sleep 1000; done", "-c", ID, "-b", f"{tmp_path}/bundle", "--exit-dir", str(tmp_path)]
    with subprocess.Popen(["conmon", *options], executable="/bin/sh", process_group=0) as conmon:
        # Popen returns when exec has closed its files, which is a little before there is a command line to be read.
        wait_until(lambda: bool(monitor_words(conmon.pid)), DEADLINE_S)
        yield conmon.pid
        os.killpg(conmon.pid, signal.SIGKILL)


def test_a_process_in_a_container_notes_no_ends(tmp_path: Path) -> None:
    """The process may have the pid that the monitor had, and would name a FIFO for whoever reads what it notes."""
    (tmp_path / "root").mkdir()
    os.mkfifo(tmp_path / ID)
    leaves = f"import ctypes, os, time; ctypes.CDLL(None).unshare(1 << 28); os.chroot({str(tmp_path / 'root')!r})"
    argv = ["conmon", "-c", f"{leaves}; time.sleep(60)", "-c", ID, "-b", "/evil", "--exit-dir", str(tmp_path)]
    with subprocess.Popen(argv, executable=sys.executable) as process:
        try:
            root = Path(f"/proc/{process.pid}/root")
            wait_until(lambda: process.poll() is not None or root.readlink() == tmp_path / "root", DEADLINE_S)
            if process.poll() is not None:
                pytest.skip("no user namespaces here")
            container = inspected(ID, pid=1, conmon_pid=process.pid)
            assert ID in monitor_words(process.pid), "it says so"
            assert not has_monitor(container.process)
            assert recorded_end(container.process) is None
        finally:
            process.kill()


def test_an_end_is_what_its_monitor_has_written_and_when(noting: int, tmp_path: Path) -> None:
    container = inspected(ID, pid=1, conmon_pid=noting)
    assert recorded_end(container.process) is None
    before = wall()
    (tmp_path / ID).write_text("137")
    end = recorded_end(container.process)
    assert end is not None
    assert (end.exit_code, end.oom_killed) == (137, False)
    assert before - 1 <= end.finished_at <= wall() + 1
    assert end.finished_at == (tmp_path / ID).stat().st_ctime
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "oom").touch()
    end = recorded_end(container.process)
    assert end is not None
    assert end.oom_killed


def test_a_monitor_will_record_an_end_only_where_that_can_be_read(noting: int, tmp_path: Path) -> None:
    process = inspected(ID, pid=1, conmon_pid=noting).process
    assert not will_record(process), "a bundle that is closed to us, or gone with its container"
    (tmp_path / "bundle").mkdir()
    assert will_record(process)
    assert not will_record(inspected(ID, pid=1, conmon_pid=os.getpid()).process), "the monitor is gone"


def test_a_note_that_says_nothing_is_none(noting: int, tmp_path: Path) -> None:
    (tmp_path / ID).write_text("")
    assert recorded_end(inspected(ID, pid=1, conmon_pid=noting).process) is None


def test_a_note_counts_only_for_the_container_of_its_monitor(noting: int, tmp_path: Path) -> None:
    for id in (ID, "other"):
        (tmp_path / id).write_text("0")
    assert recorded_end(inspected("other", pid=1, conmon_pid=noting).process) is None
    assert recorded_end(inspected(ID, pid=1, conmon_pid=os.getpid()).process) is None, "the monitor is gone"
