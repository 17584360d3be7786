"""Opening files that a container, or anybody else, may have tampered with."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

MAX_SYMLINKS: Final = 40
"""On one path, as Linux has it."""


def open_regular(directory: Path, path: Path) -> int:
    """Open a regular file that truly lies below ``directory``; a descriptor. Raises OSError.

    The last component is not followed when it is a symlink, and a FIFO cannot hold us up.
    """
    inside = path.parent.resolve(strict=True)
    if not inside.is_relative_to(directory.resolve(strict=True)):
        raise FileNotFoundError(f"{path} leads out of {directory}")
    return _open_regular(inside / path.name)


def open_scoped(root: Path, path: str) -> int:
    """Open a regular file for reading as if ``root`` were the root directory, whatever its owner does meanwhile; a
    descriptor. Raises OSError. Neither ``..`` nor a symlink leads out, and a FIFO cannot hold us up.

    Mirrors openat2(2) with RESOLVE_IN_ROOT, and upstream's SecureJoin, which is not safe from changes.
    """
    parts, symlinks = deque(path.split("/")), 0
    with ExitStack() as opened:

        def open_directory(name: str | Path, below: int | None) -> int:
            fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=below)
            opened.callback(os.close, fd)
            return fd

        trail = [open_directory(root.resolve(strict=True), None)]
        while parts:
            part = parts.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                trail = trail[:-1] or trail
                continue
            target = _symlink_target(part, trail[-1])
            if target is not None:
                symlinks += 1
                if symlinks > MAX_SYMLINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                trail = trail[:1] if target.startswith("/") else trail
                parts.extendleft(reversed(target.split("/")))
            elif any(parts):
                trail.append(open_directory(part, trail[-1]))
            else:
                return _open_regular(part, trail[-1])
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def _symlink_target(name: str, directory: int) -> str | None:
    """None for what is no symlink. Raises OSError."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _open_regular(path: str | Path, directory: int | None = None) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(f"{path} is not a regular file")
    return fd


@contextmanager
def regular_file(directory: Path, path: Path) -> Iterator[int]:
    """`open_regular`, closed at the end."""
    fd = open_regular(directory, path)
    try:
        yield fd
    finally:
        os.close(fd)


def read_tail(fd: int, max_bytes: int) -> tuple[bytes, bool]:
    """The last bytes of a file, at most so many, and whether that is all of it. Raises OSError."""
    start = max(0, os.fstat(fd).st_size - max_bytes)
    return os.pread(fd, max_bytes, start), start == 0
