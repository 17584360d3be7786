"""Directories by descriptor: paths below one are opened step by step, and no step follows a symbolic link.

A path that is looked up as a whole follows links that others have put in directories on it. Here the way begins at a
directory that the configuration names, which may lie behind links; from there on each directory is opened in the one
above it. (For paths of several names that others write, `workers.fs.openat2` has openat2(2).)

Needs little to start with: `workers.userns.entry` is in the way of a container's start.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ipc.host.private_directories import PRIVATE_MODE, make_private

MAX_NAME_BYTES: Final = 255
"""Bytes of one name, on every file system of Linux."""

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW: Final = _OPEN | os.O_NOFOLLOW
_PERMISSIONS: Final = 0o777


@contextmanager
def root_directory(path: str) -> Iterator[int]:
    """A directory of the configuration, which is there. Raises OSError."""
    fd = os.open(path, _OPEN)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def private_root(path: str) -> Iterator[int]:
    """Descriptor of a directory of the configuration, made when it is missing, with the agent as its only user: where
    all users may write, another one may have made it. Raises OSError."""
    make_private(path)
    with root_directory(path) as fd:
        _ensure_ours(fd, path, PRIVATE_MODE)
        yield fd


@contextmanager
def directory_below(parent: int, *names: str) -> Iterator[int]:
    """One that is there, each name one step down. Raises OSError: ENOTDIR for a symbolic link, whatever it leads to."""
    fd = os.dup(parent)
    try:
        for name in names:
            fd = _step(fd, name)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def made_below(parent: int, *names: str, mode: int = PRIVATE_MODE) -> Iterator[int]:
    """Open a directory as `directory_below` does, and make those that are missing. All of them have that mode then,
    whatever the umask is, also after an interrupted call. Raises OSError."""
    fd = os.dup(parent)
    try:
        for name in names:
            _make(fd, name)
            fd = _step(fd, name)
            _ensure_ours(fd, name, mode)
        yield fd
    finally:
        os.close(fd)


def is_name(text: str) -> bool:
    """Whether the text can be the name of something in a directory, and of nothing else."""
    is_plain = text not in ("", ".", "..") and "/" not in text and "\0" not in text
    return is_plain and len(os.fsencode(text)) <= MAX_NAME_BYTES


def is_absent(*steps: str) -> bool:
    """Whether nothing is there for certain. One lstat(2): for ways that others cannot change, and no thread's work."""
    try:
        os.lstat(os.path.join(*steps))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _step(fd: int, name: str) -> int:
    """The next descriptor, in place of this one, which is closed only when there is a next one. Raises OSError."""
    if not is_name(name):
        raise OSError(errno.EINVAL, "is not a file name", name)
    below = os.open(name, _BELOW, dir_fd=fd)
    os.close(fd)
    return below


def _make(parent: int, name: str) -> None:
    """Raises OSError."""
    if not is_name(name):
        raise OSError(errno.EINVAL, "is not a file name", name)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, PRIVATE_MODE, dir_fd=parent)


def _ensure_ours(fd: int, name: str, mode: int) -> None:
    """Ours, with that mode; a setgid bit besides, which an fsGroup brings, stays. Raises OSError."""
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "belongs to another user", name)
    if found.st_mode & _PERMISSIONS != mode:
        os.fchmod(fd, mode)
