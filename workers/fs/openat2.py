"""Opens files that others may be changing at this moment, without leaving their root.

A container may put a symbolic link, or another mount, anywhere below a volume that it can write to, and swap it between
two calls. So a path is given to the kernel in one piece with what it may pass through (openat2), and from then on the
file is meant by its descriptor, never by its path again.

Needs nothing but the standard library: `workers.userns.entry` runs it in an interpreter that has nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NO_XDEV: Final = 0x01
"""RESOLVE_*: no other mount, not even a bind mount of the same file system."""
NO_MAGICLINKS: Final = 0x02
NO_SYMLINKS: Final = 0x04
BENEATH: Final = 0x08
"""Nothing above the directory that the path starts from: no absolute links, no ``..`` out of it."""
IN_ROOT: Final = 0x10
"""As if that directory were the root: absolute links and ``..`` end there."""

READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

MAX_TRIES: Final = 100
"""Tries of one path with ``..`` in it: the kernel gives up (EAGAIN) whenever anything is renamed or mounted on the host
meanwhile, which can happen all the time."""

_SYS_OPENAT2: Final = 437
"""On every architecture."""
_AT_FDCWD: Final = -100
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    """struct open_how of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int | None, path: str, flags: int, resolve: int) -> int:
    """openat2(2): a descriptor. ``directory`` None is for an absolute path. Raises OSError: ELOOP for a symbolic link
    where none may be, EXDEV for what leads out."""
    how = _OpenHow(flags=flags | os.O_CLOEXEC, mode=0, resolve=resolve)
    start = _AT_FDCWD if directory is None else directory
    name = ctypes.c_char_p(os.fsencode(path))
    for _ in range(MAX_TRIES):
        fd: int = _LIBC.syscall(_SYS_OPENAT2, start, name, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        if ctypes.get_errno() != errno.EAGAIN:
            break
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


@contextmanager
def opened(directory: int | None, path: str, flags: int, resolve: int) -> Iterator[int]:
    """`open_beneath`, closed at the end."""
    fd = open_beneath(directory, path, flags, resolve)
    try:
        yield fd
    finally:
        os.close(fd)
