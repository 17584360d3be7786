"""Removing trees with mounts in them, and trees that are deep: nothing outside is entered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.open_files import open_files, open_files_before
from workers.fs.directories import root_directory
from workers.fs.tree_removal import remove_tree

ROOT = Path(__file__).parents[4]


def test_depth_costs_neither_stack_nor_descriptors(deep_path: Path) -> None:
    depth = 5000
    (deep_path / "tree").mkdir()
    fd = os.open(deep_path / "tree", os.O_RDONLY)
    for level in range(depth):
        os.mkdir("d", dir_fd=fd)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        if level % 300 == 299:
            os.fchmod(fd, 0o500)
            os.fchmod(fd, 0o700)
    os.close(fd)
    with root_directory(str(deep_path)) as parent:
        before = open_files_before()
        assert remove_tree(parent, "tree") == ()
        assert open_files() == before
    assert not (deep_path / "tree").exists()


_MOUNTED = """
import subprocess, sys
from workers.fs.directories import root_directory
from workers.fs.tree_removal import remove_tree
tree = sys.argv[1]
subprocess.run(["mount", *sys.argv[3:], f"{tree}/tree/{sys.argv[2]}"], check=True)
with root_directory(tree) as parent:
    print(*remove_tree(parent, "tree"), sep="\\n")
"""


def in_mount_namespace(*arguments: str) -> str:
    """Output of the script above in mount and user namespaces of its own."""
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", _MOUNTED, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if "unshare:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_bind_mount_of_the_same_file_system_is_not_entered(parent: int, tmp_path: Path) -> None:
    said = in_mount_namespace(str(tmp_path), "a/b", "--bind", str(tmp_path / "outside"))
    assert said == "'tree/a/b': is a mount point"
    assert (tmp_path / "tree" / "a" / "b").is_dir()


def test_another_file_system_is_not_entered(parent: int, tmp_path: Path) -> None:
    (tmp_path / "tree" / "beside").write_text("goes")
    assert in_mount_namespace(str(tmp_path), "a", "-t", "tmpfs", "tmpfs") == "'tree/a': is a mount point"
    assert os.listdir(tmp_path / "tree") == ["a"]


def test_a_mount_on_the_tree_itself_is_not_entered(parent: int, tmp_path: Path) -> None:
    said = in_mount_namespace(str(tmp_path), ".", "--bind", str(tmp_path / "outside"))
    assert said == "'tree': is a mount point"
