"""The file system that something lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.host.file_systems import file_system_at, file_system_type, mount_id, type_of_mount

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
25 22 0:23 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw
30 22 0:26 / /run/user/1000 rw,nosuid - tmpfs tmpfs rw,mode=700
nonsense
"""


@pytest.mark.parametrize(("mount", "kind"), [(22, "ext4"), (25, "tmpfs"), (30, "tmpfs"), (2, ""), (99, "")])
def test_which_file_system(mount: int, kind: str) -> None:
    assert type_of_mount(MOUNTS.splitlines(), mount) == kind


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
