"""Opens regular files without ever blocking, even if the name belongs to a FIFO, a socket, a device or a directory.

A plain open(2) of a FIFO waits for another process, possibly for ever. So all files but the kernel's are opened here,
or with O_NONBLOCK elsewhere; `tests/unit/test_blocking_opens.py` reads the source.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PRIVATE_MODE: Final = 0o600
_ALWAYS: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE_BYTES: Final = 1 << 20

StrPath = str | os.PathLike[str]


def open_regular_file(path: StrPath, flags: int = os.O_RDONLY, mode: int = PRIVATE_MODE) -> int:
    """Descriptor of a regular file, by the flags of open(2). A link is followed unless O_NOFOLLOW says otherwise.
    Raises OSError: FileNotFoundError also for what is no regular file."""
    try:
        fd = os.open(path, flags | _ALWAYS, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise _irregular(path) from None
        raise
    return checked_regular(fd, path)


def checked_regular(fd: int, path: StrPath) -> int:
    """The same descriptor. Raises FileNotFoundError, with the descriptor closed, for what is no regular file."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _irregular(path)
    return fd


def _irregular(path: StrPath) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "is not a regular file", os.fspath(path))


@contextmanager
def opened_regular_file(path: StrPath, flags: int = os.O_RDONLY, mode: int = PRIVATE_MODE) -> Iterator[int]:
    """`open_regular_file`, closed at the end."""
    fd = open_regular_file(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def read_regular_file(path: StrPath, max_bytes: int) -> bytes:
    """Content of a regular file, at most its first ``max_bytes``. Raises OSError."""
    with opened_regular_file(path) as fd:
        return read_at_most(fd, max_bytes)


def read_at_most(fd: int, max_bytes: int) -> bytes:
    """The next bytes of a file, at most so many. Raises OSError."""
    # No larger buffer than the file needs: each of a megabyte costs five pages that the kernel makes anew.
    piece = min(max_bytes, max(os.fstat(fd).st_size, 0) + 1, _PIECE_BYTES)
    data = os.read(fd, piece)
    if len(data) < piece:
        return data
    pieces, missing = [data], max_bytes - len(data)
    while missing > 0 and (data := os.read(fd, min(missing, _PIECE_BYTES))):
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)


def write_regular_file(path: StrPath, data: bytes, mode: int = PRIVATE_MODE) -> None:
    """Give the file that content, and make it where it is not there. Not atomic. Raises OSError."""
    with opened_regular_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode) as fd:
        write_all(fd, data)


def write_all(fd: int, data: bytes) -> None:
    """Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
