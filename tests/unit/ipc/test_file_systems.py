"""Which file system something lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.file_systems import file_system_at, file_system_type, mount_id


def test_the_file_system_is_that_of_the_mount(tmp_path: Path) -> None:
    assert file_system_at(Path("/proc")) == "proc"
    assert file_system_at(Path("/dev/shm")) == "tmpfs"
    assert file_system_at(tmp_path) not in ("", "proc")


def test_it_is_known_of_a_descriptor(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, Path("/proc/self/status").open() as status:
        assert file_system_type(file.fileno()) == file_system_at(tmp_path)
        assert file_system_type(status.fileno()) == "proc"
        assert mount_id(file.fileno()) != mount_id(status.fileno())


def test_what_is_on_no_mount_has_none() -> None:
    """A pipe lies on a mount of the kernel's own."""
    reading, writing = os.pipe()
    try:
        assert file_system_type(reading) == ""
    finally:
        os.close(reading)
        os.close(writing)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_system_at(tmp_path / "none")
