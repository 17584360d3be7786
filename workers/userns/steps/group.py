"""Giving the files of a volume to a group of its pod's containers."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from workers.fs import openat2
from workers.userns.steps.syscalls import LIBC, Refused, checked

AT_EMPTY_PATH: Final = 0x1000
MAX_DEPTH: Final = 200
"""Most directories below one another that are given to a group: each costs descriptors."""
_NOT_HERE: Final = frozenset({errno.ENOENT, errno.EXDEV})
"""Gone, or another mount."""
READ_WRITE: Final = 0o660
READ_ONLY: Final = 0o440
DIRECTORY: Final = stat.S_ISGID | 0o110


def give_to_group(path: str, gid: int, read_only: bool = False, only_on_root_mismatch: bool = False) -> None:
    """All below and the path itself to that group, with its rights (VolumeOwnership, pkg/volume/volume_linux.go).

    The root last: as long as it does not fit, OnRootMismatch sees that not everything is done.
    """
    with openat2.opened(None, path, os.O_PATH, openat2.NO_SYMLINKS) as root:
        if only_on_root_mismatch and _fits(os.fstat(root), gid, read_only):
            return
        if stat.S_ISDIR(os.fstat(root).st_mode):
            with openat2.opened(root, ".", openat2.READ_DIRECTORY, openat2.BENEATH) as directory:
                _give_below(directory, gid, read_only, 0)
        _give(root, gid, read_only)


def _fits(root: os.stat_result, gid: int, read_only: bool) -> bool:
    wanted = READ_ONLY if read_only else READ_WRITE
    if stat.S_ISDIR(root.st_mode):
        wanted |= DIRECTORY
    return root.st_gid == gid and root.st_mode & wanted == wanted


def _give_below(directory: int, gid: int, read_only: bool, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Refused(f"more than {MAX_DEPTH} directories lie within one another")
    for name in os.listdir(directory):
        try:
            found = openat2.open_beneath(directory, name, os.O_PATH | os.O_NOFOLLOW, openat2.BENEATH | openat2.NO_XDEV)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            continue
        try:
            if stat.S_ISDIR(os.fstat(found).st_mode):
                with openat2.opened(found, ".", openat2.READ_DIRECTORY, openat2.BENEATH) as below:
                    _give_below(below, gid, read_only, depth + 1)
            _give(found, gid, read_only)
        finally:
            os.close(found)


def _give(file: int, gid: int, read_only: bool) -> None:
    """Give an open file to the group by its descriptor: of a symbolic link the link itself, which has no mode of its
    own."""
    _chown(file, gid)
    mode = os.fstat(file).st_mode
    if stat.S_ISLNK(mode):
        return
    wanted = (READ_ONLY if read_only else READ_WRITE) | (DIRECTORY if stat.S_ISDIR(mode) else 0)
    if mode & wanted != wanted:
        os.chmod(f"/proc/self/fd/{file}", stat.S_IMODE(mode) | wanted)


def _chown(file: int, gid: int) -> None:
    if os.fstat(file).st_gid != gid:
        checked(LIBC.fchownat(file, b"", -1, gid, AT_EMPTY_PATH), str(file))
