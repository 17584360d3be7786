"""On which mount of this process's something lies, and what kind of file system that is.

By the number of the mount, not of the device: file systems with subvolumes show files under numbers that no mount has.
Needs nothing but the standard library: `workers.userns.entry` comes by here in an interpreter that has nothing else.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Final

MEMORY_FILE_SYSTEMS: Final = frozenset({"tmpfs", "ramfs"})
"""File systems whose content reaches no disk, but for swap."""
KERNEL_FILE_SYSTEMS: Final = frozenset(
    {"binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "proc", "securityfs", "sysfs", "tracefs"}
)
"""File systems whose files have no content but what the kernel says when they are read."""


def mount_id(fd: int) -> int:
    """Id of the mount of this process's that a file lies on. Raises OSError."""
    with open(f"/proc/self/fdinfo/{fd}") as info:
        for line in info:
            name, _, value = line.partition(":")
            if name == "mnt_id":
                return int(value)
    raise OSError(errno.ENOSYS, "the kernel does not tell on which mount a file lies")


def file_system_type(fd: int) -> str:
    """Type of a file system as /proc/self/mountinfo calls it, e.g. ``tmpfs``; empty when it is on no mount of ours
    (detached).

    statfs(2) would say it, but Python does not pass on its f_type. Raises OSError.
    """
    wanted = mount_id(fd)
    with open("/proc/self/mountinfo", errors="surrogateescape") as mounts:
        return type_of_mount(mounts, wanted)


def type_of_mount(mounts: Iterable[str], mount: int) -> str:
    """Type of a mount's file system by the lines of mountinfo (proc(5)); empty when it is none of them."""
    wanted = str(mount)
    for line in mounts:
        head, _, tail = line.partition(" - ")
        if tail and head.split(" ", 1)[0] == wanted:
            return tail.split(" ", 1)[0]
    return ""


def file_system_at(path: str | os.PathLike[str]) -> str:
    """`file_system_type` of what the path leads to. Raises OSError."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return file_system_type(fd)
    finally:
        os.close(fd)
