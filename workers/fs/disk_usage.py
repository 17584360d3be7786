"""Disk usage of a directory tree, whose content may be hostile.

Mirrors GetDiskUsage (pkg/volume/util/fs/fs.go): blocks, not lengths; a file with several names counts once; nothing on
another mount, and no symbolic link is followed. Depth costs neither stack nor descriptors: one directory is open at a
time, and the way back up is "..", which is checked. Different on purpose: a tree with more files than are counted has
no size, which its limits take for more than they allow.

Needs nothing but the standard library: `workers.userns.entry` runs it too, in an interpreter that has nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from typing import Final, NamedTuple

from workers.fs.directories import directory_below

BLOCK_BYTES: Final = 512
"""Bytes of one unit of st_blocks."""
MAX_FILES: Final = 1_000_000
"""Counted in one tree, directories among them."""
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Removed or replaced meanwhile."""
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def used_bytes(path: str, max_files: int = MAX_FILES) -> int | None:
    """Bytes used by a directory; 0 when it does not exist, None when it has more files than ``max_files``. Others must
    not be able to change the path itself.

    Blocks. Raises OSError: EACCES when files of mapped users are in the way.
    """
    used = used_bytes_and_inodes(path, max_files)
    return None if used is None else used[0]


def used_bytes_and_inodes(path: str, max_files: int = MAX_FILES) -> tuple[int, int] | None:
    """Bytes that are used below a path, and the number of inodes. Raises OSError."""
    (used, is_whole) = _counted(path, max_files)
    return used if is_whole else None


def bytes_of_files(paths: Iterable[os.PathLike[str]]) -> int:
    """Bytes used by files, whatever they are; nothing by those that are not there. Raises OSError."""
    used = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            used += os.lstat(path).st_blocks * BLOCK_BYTES
    return used


def bytes_and_inodes_at_least(path: str, max_files: int) -> tuple[int, int]:
    """Bytes and inodes of so many files below a path at the most: less than there is when there are more. Raises
    OSError."""
    return _counted(path, max_files)[0]


def _counted(path: str, max_files: int) -> tuple[tuple[int, int], bool]:
    """Bytes and inodes, and whether all were counted."""
    try:
        top = os.open(path, _OPEN)
    except FileNotFoundError:
        return (0, 0), True
    try:
        count = _Count(top, max_files)
        try:
            count.run()
        except _TooMany:
            return count.so_far, False
        return count.so_far, True
    finally:
        os.close(top)


class _TooMany(Exception):
    """Too many files, or directories that are moved again and again."""


class _Level(NamedTuple):
    """A directory on the way from the top to the one that is open."""

    name: str
    identity: tuple[int, int]
    """Device and inode."""
    left: list[str]
    """Directories in it that were not entered yet."""


class _Count:
    """One measure under way."""

    def __init__(self, top: int, max_files: int) -> None:
        self._top = top
        self._device = os.fstat(top).st_dev
        self._max_files = max_files
        self._files = 0
        self._linked: set[int] = set()
        """Inodes of files with several names."""
        self._bytes = os.fstat(top).st_blocks * BLOCK_BYTES
        self._inodes = 1

    @property
    def so_far(self) -> tuple[int, int]:
        """Bytes and inodes."""
        return self._bytes, self._inodes

    def run(self) -> None:
        """Count everything. Raises OSError, _TooMany."""
        here = os.dup(self._top)
        try:
            way = [self._level("", here)]
            while way:
                if not way[-1].left:
                    way.pop()
                    self._climb(here, way)
                elif self._enter(here, name := way[-1].left.pop()):
                    way.append(self._level(name, here))
        finally:
            os.close(here)

    def _level(self, name: str, directory: int) -> _Level:
        """Counts what is in an open directory."""
        directories = []
        with os.scandir(directory) as entries:
            for entry in entries:
                self._spend(1)
                try:
                    found = os.lstat(entry.name, dir_fd=directory)
                except FileNotFoundError:
                    continue
                self._add(found)
                if stat.S_ISDIR(found.st_mode) and found.st_dev == self._device:
                    directories.append(entry.name)
        return _Level(name, _identity(directory), directories)

    def _enter(self, here: int, name: str) -> bool:
        """Let ``here`` be a directory in it; False when there is none of that name any more."""
        try:
            _become(here, os.open(name, _OPEN, dir_fd=here))
        except OSError as error:
            if error.errno in _GONE:
                return False
            raise
        return True

    def _climb(self, here: int, way: list[_Level]) -> None:
        """Let ``here`` be the last one on the way. Somebody may have moved it meanwhile: then it is looked for from the
        top, and of one that is not found any more nothing else is counted, as of any other that has gone."""
        if way:
            _become(here, os.open("..", _OPEN, dir_fd=here))
        while way and _identity(here) != way[-1].identity:
            self._spend(len(way))
            try:
                with directory_below(self._top, *(level.name for level in way[1:])) as found:
                    is_it = _identity(found) == way[-1].identity
                    os.dup2(found, here, inheritable=False)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                is_it = False
            if not is_it:
                way.pop()

    def _spend(self, steps: int) -> None:
        self._files += steps
        if self._files > self._max_files:
            raise _TooMany

    def _add(self, found: os.stat_result) -> None:
        if found.st_dev != self._device or found.st_ino in self._linked:
            return
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            self._linked.add(found.st_ino)
        self._bytes += found.st_blocks * BLOCK_BYTES
        self._inodes += 1


def _identity(directory: int) -> tuple[int, int]:
    found = os.fstat(directory)
    return found.st_dev, found.st_ino


def _become(here: int, other: int) -> None:
    """The descriptor stands for another directory, whose own is closed."""
    try:
        os.dup2(other, here, inheritable=False)
    finally:
        os.close(other)
