"""Removed files that processes have open, of real processes and, where this user may make one, in a real cgroup."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from workers.userns.steps import unlinked_files as looked_at
from workers.userns.steps.unlinked_files import Mount, parsed_mounts, unlinked_files, volume_of

MIB: Final = 1 << 20
EMPTY_DIRS: Final = "/u-1/volumes/kubernetes.io~empty-dir/"
HOLDS: Final = """
import os, sys, time
path, mib = sys.argv[1], int(sys.argv[2])
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * (mib << 20))
exec(sys.argv[3])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def disk() -> Iterator[Path]:
    """A directory on a disk; /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="rootlet-test-") as directory:
        yield Path(directory)


class Process:
    """Holds a file until it is told to end, after it has done something with it."""

    def __init__(self, path: Path, then: str, mib: int = 2) -> None:
        command = [sys.executable, "-c", HOLDS, str(path), str(mib), then]
        # pytest's own streams are removed files.
        ends, none = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=ends, stdout=ends, stderr=none, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.pid = self._process.pid

    def end(self) -> None:
        self._process.communicate("")


@pytest.fixture
def everything_is_the_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever this host has its disk mounted; what none of its mounts shows is nobody's."""
    monkeypatch.setattr(looked_at, "volume_of", lambda mount, _empty_dirs: "" if mount is not None else "unseen")


KEPT: Final = [
    ("os.unlink(path)", (2 * MIB, 1)),
    ("os.unlink(path); os.dup(fd)", (2 * MIB, 1)),
    ("os.unlink(path); os.fork()", (2 * MIB, 1)),
    ("os.unlink(path); os.fork() or time.sleep(1000); os.close(fd)", (2 * MIB, 1)),
    ("os.unlink(path); os.chdir('/'); os.setsid()", (2 * MIB, 1)),
    ("os.link(path, path + '2'); os.unlink(path); os.unlink(path + '2')", (2 * MIB, 1)),
    ("fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x' * (1 << 20))", (MIB, 1)),
]
COUNTED_ELSEWHERE: Final = [
    "",
    "os.link(path, path + '2'); os.unlink(path)",
    "os.rename(path, path + ' (deleted)')",
    "os.unlink(path); os.close(fd)",
    "os.unlink(path); os.close(fd); fd = os.memfd_create('m'); os.write(fd, b'x' * (1 << 20))",
    "os.unlink(path); os.close(fd); import socket; s = socket.socketpair()",
]


@pytest.mark.usefixtures("everything_is_the_roots")
@pytest.mark.parametrize(("then", "held"), KEPT)
def test_a_removed_file_counts_once_for_whoever_has_it_open(disk: Path, then: str, held: tuple[int, int]) -> None:
    process = Process(disk / "file", then)
    try:
        roots, volumes = unlinked_files({"main": (process.pid, ""), "other": (process.pid, "")}, EMPTY_DIRS)
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=False)
        process.end()
    assert volumes == {}
    assert roots.keys() == {"main"}
    [used, inodes] = roots["main"]
    assert (0 <= used - held[0] < MIB // 2, inodes) == (True, held[1])


@pytest.mark.usefixtures("everything_is_the_roots")
@pytest.mark.parametrize("then", COUNTED_ELSEWHERE)
def test_a_file_with_a_name_and_what_is_memory_do_not_count(disk: Path, then: str) -> None:
    process = Process(disk / "file", then)
    try:
        assert unlinked_files({"main": (process.pid, "")}, EMPTY_DIRS) == ({}, {})
    finally:
        process.end()


@pytest.mark.usefixtures("everything_is_the_roots")
def test_so_many_descriptors_are_looked_at_and_no_more(disk: Path) -> None:
    process = Process(disk / "file", "os.unlink(path); os.dup2(fd, 100); os.close(fd)")
    try:
        assert unlinked_files({"main": (process.pid, "")}, EMPTY_DIRS, 2) == ({}, {})
        assert unlinked_files({"main": (process.pid, "")}, EMPTY_DIRS, 100)[0].keys() == {"main"}
    finally:
        process.end()


@pytest.mark.usefixtures("everything_is_the_roots")
def test_a_process_counts_in_its_own_cgroup_alone(disk: Path) -> None:
    """Also when the number is another process's by the time at which its descriptors are looked at."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
    if not path:
        pytest.skip("needs cgroup v2")
    own = f"/sys/fs/cgroup{path}".rstrip("/")
    process = Process(disk / "file", "os.unlink(path)")
    try:
        found, _ = unlinked_files({"main": (1, own)}, EMPTY_DIRS)
        assert found["main"][1] >= 1
        with looked_at._opened(f"/proc/{process.pid}") as directory:
            assert looked_at._is_in(directory, own)
            assert not looked_at._is_in(directory, f"{own}/below")
    finally:
        process.end()


def test_nobody_is_there_any_more() -> None:
    assert unlinked_files({"main": (2**22 + 1, ""), "other": (0, "/sys/fs/cgroup/rootlet-none")}, EMPTY_DIRS) == (
        {},
        {},
    )


POD: Final = "/home/u/pods/u-1/volumes/kubernetes.io~empty-dir"


@pytest.mark.parametrize(
    ("mount", "volume"),
    [
        (Mount("/", "/", "overlay"), ""),
        (Mount("/vfs/dir/x", "/", "ext4"), ""),
        (Mount("/srv", "/mnt", "overlay"), ""),
        (Mount(f"{POD}/scratch", "/scratch", "ext4"), "scratch"),
        (Mount(f"{POD}/scratch/sub/path", "/scratch", "ext4"), "scratch"),
        (Mount("/u-1/volumes/kubernetes.io~empty-dir/scratch", "/", "xfs"), "scratch"),
        (Mount(f"{POD}/scratch/u-1/volumes/kubernetes.io~empty-dir/other", "/x", "ext4"), "scratch"),
        (Mount("/home/u/pods/u-2/volumes/kubernetes.io~empty-dir/scratch", "/scratch", "ext4"), None),
        (Mount("/home/u/data", "/data", "ext4"), None),
        (Mount("/home/u/volumes/claim/_data", "/claim", "btrfs"), None),
        (Mount("/srv/u-1/volumes/kubernetes.io~empty-dir/scratch", "/scratch", "tmpfs"), "scratch"),
        (Mount("/", "/memory", "tmpfs"), None),
        (Mount("/", "/", "tmpfs"), None),
        (None, ""),
    ],
)
def test_which_volume_a_mount_shows(mount: Mount | None, volume: str | None) -> None:
    assert volume_of(mount, EMPTY_DIRS) == volume


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    lines = (
        "721 149 0:101 / / rw - overlay overlay rw",
        "815 721 8:1 /a\\040b /c rw shared:1 - ext4 /dev/x rw",
        "bad",
        "",
    )
    assert parsed_mounts("\n".join(lines)) == {721: Mount("/", "/", "overlay"), 815: Mount("/a\\040b", "/c", "ext4")}
    own = parsed_mounts(Path("/proc/self/mountinfo").read_text())
    assert any(mount.point == "/" for mount in own.values())
