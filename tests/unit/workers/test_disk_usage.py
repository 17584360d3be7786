"""How much of the disk a tree takes that somebody has made with intent."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from workers import disk_usage
from workers.disk_usage import MAX_DEPTH, used_bytes

KIB = 1024


def du_bytes(path: Path) -> int:
    """What du(1) says."""
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
    assert 100 * KIB <= used_bytes(str(tree)) < 200 * KIB
    assert used_bytes(str(tree)) == du_bytes(tree)


def test_what_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert used_bytes(str(tmp_path / "missing")) == 0


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels") as caught:
        used_bytes(str(tmp_path / "link"))
    assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)


def test_depth_is_limited(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH - 1))
    deep.mkdir(parents=True)
    assert used_bytes(str(tmp_path)) == du_bytes(tmp_path)
    (deep / "d").mkdir()
    with pytest.raises(OSError, match="directories lie within one another"):
        used_bytes(str(tmp_path))


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_usage, "MAX_FILES", 3)
    for name in "abc":
        (tmp_path / name).touch()
    used_bytes(str(tmp_path))
    (tmp_path / "d").touch()
    with pytest.raises(OSError, match="more than 3 files"):
        used_bytes(str(tmp_path))
