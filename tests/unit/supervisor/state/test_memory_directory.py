"""Directories for what must not reach a disk."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.state.memory_directory import NotMemory, make_memory_directory


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


def test_it_is_made_and_private(memory: Path) -> None:
    directory = memory / "a" / "b"
    mask = os.umask(0o022)
    try:
        make_memory_directory(directory)
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(made.stat().st_mode) for made in (directory, directory.parent)] == [0o700, 0o700]
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
