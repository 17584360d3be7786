"""Directories for what must not reach a disk."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.memory_directory import NotMemory, file_system_type, make_memory_directory

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
25 22 0:23 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw
30 22 0:26 / /run/user/1000 rw,nosuid - tmpfs tmpfs rw,mode=700
nonsense
"""


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


@pytest.mark.parametrize(
    ("device", "kind"), [((8, 1), "ext4"), ((0, 23), "tmpfs"), ((0, 26), "tmpfs"), ((0, 2), ""), ((9, 9), "")]
)
def test_which_file_system(device: tuple[int, int], kind: str) -> None:
    assert file_system_type(MOUNTS, os.makedev(*device)) == kind


def test_it_is_made_and_private(memory: Path) -> None:
    directory = memory / "a" / "b"
    make_memory_directory(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    make_memory_directory(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_another_file_system_is_refused_in_words() -> None:
    """sysfs is there on every host, and is no memory."""
    with pytest.raises(NotMemory, match=r"^/sys is not in memory, but on sysfs$|^/sys belongs to another user$"):
        make_memory_directory(Path("/sys"))


def test_what_cannot_be_made_is_an_error_of_the_system(memory: Path) -> None:
    (memory / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        make_memory_directory(memory / "file")
