"""Directories whose content must not reach a disk: private, on a file system that is memory.

tmpfs may be swapped out, as the kubelet's may; a host that must not do that either encrypts its swap or has none.
"""

from __future__ import annotations

import os
from pathlib import Path

from ipc.host.file_systems import MEMORY_FILE_SYSTEMS, file_system_type
from ipc.host.private_directories import PRIVATE_MODE, make_private


class NotMemory(Exception):
    """Content written to the directory would reach a disk, or others; the text is for people."""


def make_memory_directory(directory: Path) -> None:
    """Make the directory and what is missing above it, all 0700, and be sure that it is in memory and ours alone.

    Raises NotMemory, and OSError when it cannot be made or looked at.
    """
    make_private(directory)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found, kind = os.fstat(fd), file_system_type(fd)
    finally:
        os.close(fd)
    if found.st_uid != os.getuid():
        raise NotMemory(f"{directory} belongs to another user")
    if kind not in MEMORY_FILE_SYSTEMS:
        raise NotMemory(f"{directory} is not in memory, but on {kind or 'an unknown file system'}")
    if found.st_mode & 0o077:
        directory.chmod(PRIVATE_MODE)
