"""Which file system a file lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.mounts import file_system_type, type_of_mount

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
    assert _of("/proc") == "proc"
    assert _of("/dev/shm") == "tmpfs"
    assert _of(str(tmp_path)) not in ("", "proc")


def _of(path: str) -> str:
    fd = os.open(path, os.O_PATH)
    try:
        return file_system_type(fd)
    finally:
        os.close(fd)
