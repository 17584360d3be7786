"""Owners of monitors, and what ending one does: with real processes that look like conmon."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.podman_service import wait_until
from workers.podman_files.monitor import monitor_words
from workers.podman_files.orphaned_monitors import Monitor, end, find_monitors, parse_monitor

LOGS = "/var/lib/rootlet/logs"
ID = "0a" * 32
ARGV = ("/usr/bin/conmon", "--api-version", "1", "-c", ID, "-u", ID, "-r", "/usr/bin/crun", "-n", "main_web")
WAITS = "import time; time.sleep(60)"
DEADLINE_S = 10.0


@pytest.mark.parametrize(
    "more",
    [
        ("-l", f"k8s-file:{LOGS}/default_web_1/main/0.log"),
        ("-l", "k8s-file:/storage/ctr.log", "--conmon-pidfile", f"{LOGS}/default_web_1/infra_0.pid"),
    ],
)
def test_a_monitor_is_ours_by_a_file_of_ours(more: tuple[str, ...]) -> None:
    found = parse_monitor(7, (*ARGV, *more), LOGS)
    assert found == Monitor(pid=7, container_id=ID, name="main_web", oci_runtime="/usr/bin/crun")


def test_the_monitor_in_rust_is_one_too() -> None:
    argv = ("/usr/libexec/podman/conmon-v3", *ARGV[1:], "-l", f"k8s-file:{LOGS}/default_web_1/main/0.log")
    assert parse_monitor(7, argv, LOGS) is not None


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ARGV,
        (*ARGV, "-l", "k8s-file:/elsewhere/0.log"),
        (*ARGV, "-l", f"k8s-file:{LOGS}-of-another/0.log"),
        (*ARGV, "-l", "journald"),
        ("conmon-v4", *ARGV[1:], "-l", f"k8s-file:{LOGS}/0.log"),
        ("tail", *ARGV[1:], "-l", f"k8s-file:{LOGS}/0.log"),
        ("conmon", "-l", f"k8s-file:{LOGS}/0.log"),
    ],
)
def test_everybody_elses_are_not(argv: tuple[str, ...]) -> None:
    assert parse_monitor(7, argv, LOGS) is None


@pytest.fixture
def conmon(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a command line like a monitor's. Its OCI runtime writes down what it is asked for."""
    runtime = tmp_path / "oci"
    runtime.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\n')
    runtime.chmod(0o755)
    argv = ["conmon", "-c", WAITS, "-r", str(runtime), "-n", "main_web", "-l", f"k8s-file:{tmp_path}/0.log"]
    process = subprocess.Popen(argv, executable=sys.executable)
    yield process
    process.kill()
    process.wait()


async def test_an_unknown_containers_monitor_is_killed_and_its_container_deleted(
    tmp_path: Path, conmon: subprocess.Popen[bytes]
) -> None:
    wait_until(lambda: bool(find_monitors(str(tmp_path))), DEADLINE_S)
    (found,) = find_monitors(str(tmp_path))
    assert (found.pid, found.name) == (conmon.pid, "main_web")
    assert await end(found, str(tmp_path), leave_s=0.05)
    assert conmon.wait(DEADLINE_S) == -9
    assert (tmp_path / "asked").read_text() == f"delete --force {WAITS}\n"
    assert find_monitors(str(tmp_path)) == ()


async def test_a_monitor_that_leaves_is_let_go(tmp_path: Path, conmon: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: bool(find_monitors(str(tmp_path))), DEADLINE_S)
    (found,) = find_monitors(str(tmp_path))
    conmon.kill()
    assert not await end(found, str(tmp_path), leave_s=DEADLINE_S)
    assert not (tmp_path / "asked").exists()


async def test_a_pid_that_has_passed_to_another_process_is_left_alone(
    tmp_path: Path, conmon: subprocess.Popen[bytes]
) -> None:
    stale = Monitor(pid=conmon.pid, container_id=ID, name="main_web", oci_runtime="/usr/bin/crun")
    assert not await end(stale, str(tmp_path), leave_s=0.05)
    assert conmon.poll() is None


def test_a_container_cannot_speak_as_a_monitor(tmp_path: Path) -> None:
    """The program that it names as its OCI runtime would be run on the host. Its root tells it apart."""
    (tmp_path / "root").mkdir()
    leaves = f"import ctypes, os, time; ctypes.CDLL(None).unshare(1 << 28); os.chroot({str(tmp_path / 'root')!r})"
    argv = ["conmon", "-c", f"{leaves}; time.sleep(60)", "-r", "/evil", "-n", "x", "-l", f"k8s-file:{tmp_path}/0.log"]
    with subprocess.Popen(argv, executable=sys.executable) as process:
        try:
            root = Path(f"/proc/{process.pid}/root")
            wait_until(lambda: process.poll() is not None or root.readlink() == tmp_path / "root", DEADLINE_S)
            if process.poll() is not None:
                pytest.skip("no user namespaces here")
            assert parse_monitor(process.pid, monitor_words(process.pid), str(tmp_path)) is not None, "it says so"
            assert find_monitors(str(tmp_path)) == ()
        finally:
            process.kill()
