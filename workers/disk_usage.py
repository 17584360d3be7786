"""How much of the disk a directory takes, with all that is in it, which somebody may have made with intent.

Mirrors GetDiskUsage (pkg/volume/util/fs/fs.go): blocks, not lengths; a file with several names counts once; nothing on
another mount, and no symbolic link is followed. Different on purpose: its depth and its number of files are limited.

Needs nothing but the standard library: `workers.volumes.inside` runs it too, in an interpreter that has nothing else.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from workers.directories import directory_below

BLOCK_BYTES: Final = 512
"""Of st_blocks."""
MAX_DEPTH: Final = 100
"""Directories within one another: each is open while what is in it is counted."""
MAX_FILES: Final = 1_000_000
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""Removed or replaced meanwhile."""


def used_bytes(path: str) -> int:
    """Of a directory; 0 when it is not there. No part of the path below its root is of somebody else's making.

    Blocks. Raises OSError: EACCES when files of mapped users are in the way, ELOOP or EMFILE beyond the limits.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        return _Count(os.fstat(top)).below(top, 1)
    finally:
        os.close(top)


class _Count:
    def __init__(self, top: os.stat_result) -> None:
        self._device = top.st_dev
        self._files = 0
        self._linked: set[int] = set()
        """Inodes of files with several names."""
        self._bytes = top.st_blocks * BLOCK_BYTES

    def below(self, directory: int, depth: int) -> int:
        """The whole count so far."""
        if depth > MAX_DEPTH:
            raise OSError(errno.ELOOP, f"more than {MAX_DEPTH} directories lie within one another")
        for name in os.listdir(directory):
            try:
                found = os.lstat(name, dir_fd=directory)
                self._add(found)
                if stat.S_ISDIR(found.st_mode) and found.st_dev == self._device:
                    with directory_below(directory, name) as within:
                        self.below(within, depth + 1)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
        return self._bytes

    def _add(self, found: os.stat_result) -> None:
        self._files += 1
        if self._files > MAX_FILES:
            raise OSError(errno.EMFILE, f"more than {MAX_FILES} files")
        if found.st_dev != self._device or found.st_ino in self._linked:
            return
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            self._linked.add(found.st_ino)
        self._bytes += found.st_blocks * BLOCK_BYTES
