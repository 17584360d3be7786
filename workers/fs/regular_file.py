"""Opens files that a container or another user may have tampered with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ipc.host.regular_files import checked_regular, open_regular_file
from workers.fs import openat2
from workers.fs.directories import root_directory

if TYPE_CHECKING:
    from pathlib import Path  # `workers.userns.steps` needs this module and not that one

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(directory: Path, path: Path) -> int:
    """Open a regular file that truly lies below ``directory``; a descriptor. Raises OSError.

    The last component is not followed when it is a symlink, and a FIFO cannot hold us up.
    """
    inside = path.parent
    if inside != directory:  # else wherever that leads, it is the same place
        inside = inside.resolve(strict=True)
        if not inside.is_relative_to(directory.resolve(strict=True)):
            raise FileNotFoundError(f"{path} leads out of {directory}")
    return open_regular_file(inside / path.name, os.O_NOFOLLOW)


def read_scoped(root: str, path: str, max_bytes: int) -> bytes:
    """The first bytes of a regular file as if ``root`` were the root directory, whatever its owner does meanwhile.
    Raises OSError, e.g. EAGAIN when directories are moved at this moment. Neither ``..`` nor a symlink leads out, and a
    FIFO cannot hold us up.

    Upstream's SecureJoin is not safe from changes.
    """
    with root_directory(root) as top:
        fd = checked_regular(openat2.open_beneath(top, path, _READ, openat2.IN_ROOT), path)
    try:
        return os.read(fd, max_bytes)
    finally:
        os.close(fd)


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
