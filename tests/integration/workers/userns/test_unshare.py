"""Entering Podman's namespaces, where the command itself does not behave."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.support.podman_service import wait_until
from workers.proc.procfs import is_alive
from workers.userns.read import read_volume_file
from workers.userns.unshare import KILL_WAIT_S, Step, Unshare, UnshareError

UNREACHABLE = f"""#!{sys.executable}
import os, pathlib, time
os.setpgid(0, os.getpgid(os.getppid()))  # out of the group that gets the signal
pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
time.sleep(60)
"""


HERE = """#!/bin/sh
shift
exec "$@"
"""
"""The user's own namespaces instead of Podman's."""


def a_podman(directory: Path, program: str) -> str:
    file = directory / "podman"
    file.write_text(program)
    file.chmod(stat.S_IRWXU)
    return str(file)


def test_the_program_needs_no_site_packages_and_stops_at_the_first_step_that_fails(tmp_path: Path) -> None:
    for name in ("first", "last"):
        (tmp_path / name).mkdir()
    steps: list[Step] = [
        ("remove", {"path": str(tmp_path / "first")}),
        ("bind", {"root": str(tmp_path / "gone"), "target": str(tmp_path / "place")}),
        ("remove", {"path": str(tmp_path / "last")}),
    ]
    with pytest.raises(UnshareError, match="gone: No such file or directory") as raised:
        Unshare(podman=a_podman(tmp_path, HERE)).run(steps)
    assert raised.value.done == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["last", "podman"]


def test_a_file_is_read_where_it_shows(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "v" / "out").symlink_to("../outside")
    here = Unshare(podman=a_podman(tmp_path, HERE))
    assert read_volume_file(tmp_path / "v", "bytes", 255, here, in_memory=True) == bytes(range(255))
    for path in ("out", "none", "."):
        with pytest.raises(FileNotFoundError, match=path):
            read_volume_file(tmp_path / "v", path, 255, here, in_memory=True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what was given up is not reaped yet
def test_a_command_that_no_signal_ends_is_given_up(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(UnshareError, match="not done within 1 s"):
        Unshare(podman=a_podman(tmp_path, UNREACHABLE), deadline_s=1.0).run([])
    took_s = time.monotonic() - begun
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert KILL_WAIT_S <= took_s < 30.0


def test_a_command_that_hangs_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    hangs = f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/pid\nwait\n"
    with pytest.raises(UnshareError, match="not done within 1 s"):
        Unshare(podman=a_podman(tmp_path, hangs), deadline_s=1.0).run([])
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(child), 10.0, 0.01)
