"""How much of the disk a tree takes that somebody has made with intent."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.open_files import open_files, open_files_before
from workers.fs.disk_usage import used_bytes

KIB = 1024


def du_bytes(path: Path) -> int:
    """Bytes that du(1) counts."""
    done = subprocess.run(["du", "-sxB1", str(path)], capture_output=True, text=True, check=True, timeout=30)
    return int(done.stdout.split()[0])


def test_it_counts_as_du_does(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_bytes(os.urandom(100 * KIB))
    (tree / "a" / "again").hardlink_to(tree / "a" / "b" / "file")
    (tree / "link").symlink_to("/usr")
    with (tree / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 30)
    used = used_bytes(str(tree))
    assert used == du_bytes(tree)
    assert 100 * KIB <= used < 200 * KIB


def test_what_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert used_bytes(str(tmp_path / "missing")) == 0


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels") as caught:
        used_bytes(str(tmp_path / "link"))
    assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)


def deep(top: Path, depth: int) -> int:
    """Directories within one another, deeper than any path reaches; a descriptor of the last one."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


def write_below(directory: int, size: int) -> None:
    fd = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=directory)
    os.write(fd, bytes(size))
    os.close(fd)


def test_depth_costs_neither_stack_nor_descriptors(deep_path: Path) -> None:
    last = deep(deep_path, 5000)
    write_below(last, 300 * KIB)
    os.close(last)
    (deep_path / "d" / "d" / "beside").mkdir()
    (deep_path / "d" / "d" / "beside" / "file").write_bytes(bytes(200 * KIB))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_files_before()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 5, hard))
    try:
        used = used_bytes(str(deep_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert used == du_bytes(deep_path) >= 500 * KIB
    assert open_files() <= before, "the collector may close others' meanwhile"


def test_a_tree_of_too_many_files_has_no_size(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    assert used_bytes(str(tmp_path), max_files=3) == du_bytes(tmp_path)
    (tmp_path / "d").mkdir()
    assert used_bytes(str(tmp_path), max_files=3) is None


@pytest.mark.parametrize("goes", ["moved", "replaced"])
def test_a_directory_that_is_moved_while_it_is_open_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes: str
) -> None:
    """The way up out of it is another one then: what lies there does not count, and what is left of the tree does."""
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (outside / "dear").mkdir(parents=True)
    (outside / "dear" / "file").write_bytes(bytes(300 * KIB))
    (tree / "z").mkdir()
    (tree / "z" / "file").write_bytes(bytes(100 * KIB))
    real = os.open
    moved = False

    def swap(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        nonlocal moved
        if path == ".." and not moved:
            moved = True
            os.rename(tree / "a" / "b" / "c", outside / "c")
            if goes == "replaced":
                os.rename(tree / "a", outside / "a")
                os.symlink(outside, tree / "a")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("workers.fs.disk_usage.os.open", swap)
    used = used_bytes(str(tree))
    assert moved
    assert used is not None
    assert 100 * KIB <= used < 300 * KIB


def test_who_keeps_moving_directories_is_not_measured_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / "a" / "b" / str(number) / "c").mkdir(parents=True)
    real = os.open

    def elsewhere(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return real("/" if path == ".." else path, flags, mode, dir_fd=dir_fd)

    assert used_bytes(str(tmp_path), max_files=200) is not None
    monkeypatch.setattr("workers.fs.disk_usage.os.open", elsewhere)
    assert used_bytes(str(tmp_path), max_files=200) is None
