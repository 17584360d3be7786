"""Rotates the log of one container: steps on its files, each of which may be the last one before a kill.

Mirrors rotateLog and compressLog (pkg/kubelet/logs/container_log_manager.go). Different on purpose:

- The log gets its second name by a link, and loses the first one when its monitor puts the new file there: so there is
  a log at every moment, and a rotation that was cut short goes on where it was. Upstream renames, and loses the log
  when it is killed before the monitor was told.
- The log is rotated before older ones are compressed: a log that grows faster than they are compressed does not wait.

Blocks: for a thread.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ipc.host.regular_files import opened_regular_file, write_all
from workers.logs.rotated_names import (
    COMPRESSED,
    TEMPORARY,
    next_name,
    rotated_of,
    split_excess,
    split_unused,
)

COMPRESSION_LEVEL: Final = 1
"""Level of gzip: four times as fast as the usual 6, for a third more bytes."""
_BLOCK_BYTES: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_MODE: Final = 0o600


class Control(Protocol):
    """The monitor of the container (`workers.podman_files.monitor_control`)."""

    def has_unread(self) -> bool: ...

    def reopen_log(self) -> None: ...


OpenControl = Callable[[], AbstractContextManager[Control]]
"""Raises OSError when there is no monitor any more."""


class Unconfirmed(NamedTuple):
    """A log that has its second name already: whether the monitor was told to open a new one is not known.

    It would lose what it has written since if it were told twice. It was not told, or has not taken it for what it is,
    when it writes to the old file after it has read everything: one thread reads, opens and writes.
    """

    inode: int
    size: int
    """In bytes, at a time when the monitor had read everything before."""


class Rotated(NamedTuple):
    """Result of `rotate`."""

    was_signalled: bool
    """The monitor was told just now."""
    unconfirmed: Unconfirmed | None
    """For the next time."""


def rotate(
    log: Path, max_files: int, wall: float, open_control: OpenControl, unconfirmed: Unconfirmed | None
) -> Rotated:
    """Make room for another rotated log, give the log that name, and let its monitor go over to a new file; that has
    happened when the log is another file. ``unconfirmed`` is of the time before. Raises OSError."""
    with open_control() as control:
        has_unread = control.has_unread()
        names = _names(log)
        size, inode, is_rotated = _look(log, names)
        if not inode or is_rotated:
            found = Unconfirmed(inode, size)
            if has_unread:
                return Rotated(False, None)
            if unconfirmed is None or unconfirmed.inode != inode or (inode and size <= unconfirmed.size):
                return Rotated(False, unconfirmed if unconfirmed is not None and unconfirmed.inode == inode else found)
        else:
            _rotate_away(log, names, max_files, wall)
        _tell(log, control)
    return Rotated(True, None)


def compress_older(log: Path, goes_on: Callable[[], bool]) -> None:
    """Remove leftovers, and compress all rotated logs but the newest, from which lines may still be read or which the
    monitor still writes. ``goes_on`` is asked now and then. Raises OSError.

    Once at a time for one log; a rotation of it may happen meanwhile.
    """
    in_use, unused = split_unused(_names(log))
    for name in unused:
        _remove(log.with_name(name))
    for name in in_use[:-1]:
        if not name.endswith(COMPRESSED):
            _compress(log.with_name(name), goes_on)


class _Found(NamedTuple):
    size: int
    inode: int
    is_rotated: bool
    """The same file has the name of the newest rotated log, too."""


def _look(log: Path, names: list[str]) -> _Found:
    """Inode 0 for a log that is not there."""
    try:
        current = log.stat(follow_symlinks=False)
    except FileNotFoundError:
        return _Found(-1, 0, False)
    is_rotated = False
    if current.st_nlink > 1 and names:
        with contextlib.suppress(FileNotFoundError):
            is_rotated = log.with_name(names[-1]).stat(follow_symlinks=False).st_ino == current.st_ino
    return _Found(current.st_size, current.st_ino, is_rotated)


def _rotate_away(log: Path, names: list[str], max_files: int, wall: float) -> None:
    in_use, _ = split_unused(names)
    for name in split_excess(in_use, max_files)[1]:
        _remove(log.with_name(name))
    os.link(log, log.with_name(next_name(log.name, wall, names)), follow_symlinks=False)


def _tell(log: Path, control: Control) -> None:
    """The monitor gives up, and the container with it, when it cannot make the new file: so that is there before. It
    writes the old one to the disk before it goes on: so most of that is done before, too."""
    _sync(log)
    with _opened(log.with_name(log.name + TEMPORARY), os.O_WRONLY | os.O_CREAT):
        control.reopen_log()


def _sync(log: Path) -> None:
    with contextlib.suppress(FileNotFoundError), _opened(log, os.O_RDONLY) as fd:
        os.fdatasync(fd)


def _compress(file: Path, goes_on: Callable[[], bool]) -> None:
    """With the time of its last change: by that it is known again. What was removed meanwhile stays so."""
    part = file.with_name(file.name + TEMPORARY)
    try:
        with contextlib.suppress(FileNotFoundError):
            if _write_compressed(file, part, goes_on) and file.exists():
                os.rename(part, file.with_name(file.name + COMPRESSED))
                _remove(file)
    finally:
        _remove(part)


def _write_compressed(source: Path, target: Path, goes_on: Callable[[], bool]) -> bool:
    """False when it was not finished."""
    packer = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, _GZIP)
    with _opened(source, os.O_RDONLY) as reading, _opened(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as writing:
        while block := os.read(reading, _BLOCK_BYTES):
            if not goes_on():
                return False
            write_all(writing, packer.compress(block))
        write_all(writing, packer.flush())
        found = os.fstat(reading)
        os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(writing)
    return True


def _opened(file: Path, flags: int) -> AbstractContextManager[int]:
    return opened_regular_file(file, flags | os.O_NOFOLLOW, _MODE)


def _remove(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)


def _names(log: Path) -> list[str]:
    return rotated_of(log.name, os.listdir(log.parent))
