"""Removes a directory tree, whose content may be hostile.

No symbolic link is followed, and nothing on another mount is touched: a directory is opened in the one above it, and
what is on another mount stays, with everything above it. Deep nesting costs neither stack nor descriptors: below a
certain depth directories are moved up before they are emptied. Nor do many files cost memory. All goes that can go;
what a caller has no time for goes the next time.

Needs nothing but the standard library: `workers.userns.entry` runs it too, in an interpreter that has nothing else.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final, NamedTuple

from ipc.host.file_systems import mount_id
from workers.fs.directories import directory_below, is_name

MAX_DEPTH: Final = 64
"""Directories open at the same time, each with two descriptors, and levels of recursion."""
MAX_TOLD: Final = 10
"""Most failures of one removal that are reported."""
_RWX: Final = 0o700
_SUFFIX_BYTES: Final = 8
"""Random part of a name that is unlikely to be in use."""


class Stuck(NamedTuple):
    """Something could not be removed."""

    path: str
    """From where the removal began."""
    why: str
    errno: int = 0

    def __str__(self) -> str:
        return f"{self.path!r}: {self.why}"


def remove_tree(parent: int, name: str) -> tuple[Stuck, ...]:
    """Remove the entry of that name in a directory, of whatever type; none is a success. Blocks.

    ``name`` is one (`is_name`).

    Returns the entries that could not be removed, at most `MAX_TOLD`, without the directories above them.
    """
    assert is_name(name), name
    removal = _Removal()
    try:
        if not _unlink(parent, name):
            removal.remove_top(parent, name)
    except OSError as error:
        removal.stays(name, error)
    return tuple(removal.stuck)


class _Removal:
    """One removal under way."""

    def __init__(self) -> None:
        self.stuck: list[Stuck] = []
        """The first of them."""
        self._stuck = 0
        """How many."""
        self._deep: list[str] = []
        """Names of directories that were moved to the top, and have to go yet."""
        self._top = -1
        self._mount = -1

    def remove_top(self, parent: int, name: str) -> None:
        """Raises OSError."""
        _open_up(parent, name)
        with directory_below(parent, name) as top:
            self._top, self._mount = top, mount_id(top)
            if self._mount != mount_id(parent):
                raise OSError(0, "is a mount point")
            self._empty(top, name, 1)
            while self._deep:
                deep = self._deep.pop()
                with contextlib.suppress(FileNotFoundError):  # it was moved to where `_empty` had not been yet
                    self._remove(top, os.path.join(name, deep), 1)
        if not self.stuck:
            os.rmdir(name, dir_fd=parent)

    def stays(self, path: str, error: OSError) -> None:
        self._stuck += 1
        if len(self.stuck) < MAX_TOLD:
            self.stuck.append(Stuck(path, error.strerror or str(error), error.errno or 0))

    def _empty(self, directory: int, path: str, depth: int) -> None:
        """Raises OSError."""
        with os.scandir(directory) as entries:  # not kept all at once: there may be millions
            for entry in entries:
                below = os.path.join(path, entry.name)
                try:
                    if entry.is_dir(follow_symlinks=False):
                        self._remove(directory, below, depth)
                    else:
                        os.unlink(entry.name, dir_fd=directory)
                except FileNotFoundError:
                    continue  # somebody was quicker
                except OSError as error:
                    self.stays(below, error)

    def _remove(self, parent: int, path: str, depth: int) -> None:
        """A directory. Raises OSError."""
        name = os.path.basename(path)
        if _is_removed(parent, name):
            return
        if depth >= MAX_DEPTH:
            self._move_up(parent, name)
            return
        _open_up(parent, name)
        known = self._stuck
        with directory_below(parent, name) as directory:
            if mount_id(directory) != self._mount:
                raise OSError(0, "is a mount point")
            self._empty(directory, path, depth + 1)
        if self._stuck == known:
            os.rmdir(name, dir_fd=parent)

    def _move_up(self, parent: int, name: str) -> None:
        """Raises OSError."""
        _open_up(parent, name)
        deep = f"..deep.{os.urandom(_SUFFIX_BYTES).hex()}"
        os.rename(name, deep, src_dir_fd=parent, dst_dir_fd=self._top)
        self._deep.append(deep)


def _unlink(parent: int, name: str) -> bool:
    """False when it is a directory. Raises OSError."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        return False
    return True


def _is_removed(parent: int, name: str) -> bool:
    """Whether an empty directory has gone at once, as most do: a twelfth of the calls that a look into it costs."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _open_up(parent: int, name: str) -> None:
    """Let us read, change and pass a directory of ours that does not. Raises OSError.

    A descriptor that is only a path needs no right to what it stands for; its name in /proc leads to that and nothing
    else.
    """
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        found = os.fstat(fd)
        if found.st_mode & _RWX != _RWX and found.st_uid == os.geteuid():
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(found.st_mode) | _RWX)
    finally:
        os.close(fd)
