"""Files of the agent's state: whole or absent after any kill or power cut, and checked when they are read.

The only writer of such files in the project.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

from ipc.host.regular_files import read_at_most

PRIVATE_FILE_MODE: Final = 0o600
PRIVATE_PROGRAM_MODE: Final = 0o700
MAX_REFUSED: Final = 9
"""Names that are tried for what is moved aside: something may be there that cannot be replaced, as a directory."""
NAME_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR})


class UntrustedFile(Exception):
    """A file's content is not trusted; the text says why."""


def write_atomically(path: Path, data: bytes, *, durable: bool = True, mode: int = PRIVATE_FILE_MODE) -> None:
    """Replace ``path`` by a private file with ``data``: temporary file, fsync, rename, fsync of the directory.

    Without ``durable`` there is no fsync, for callers that must not wait for the disk: after a power cut the file may
    be the old one, the new one or empty. Raises OSError.
    """
    replace_file(path, data, durable=durable, mode=mode)
    if durable:
        sync_directory(path.parent)


def replace_file(path: Path, data: bytes, *, durable: bool = True, mode: int = PRIVATE_FILE_MODE) -> None:
    """As `write_atomically`, but a power cut may leave the file as it was until `sync_directory`, which is one for all
    files that are written at once.

    The temporary name begins with a dot, so that no manifest reader takes it for a manifest. There is one writer per
    path; what an earlier one left behind when it was killed is taken away. A directory of the file's name is moved
    aside. Raises OSError.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.tmp")
    try:
        _write(temporary, data, durable, mode)
        try:
            os.replace(temporary, path)
        except IsADirectoryError:
            move_aside(path)
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """A regular file that is no larger than that; a FIFO cannot hold us up. Raises UntrustedFile and OSError."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedFile("it is not a regular file")
        if status.st_size > max_bytes:
            raise UntrustedFile(f"it is larger than {max_bytes} bytes")
        return read_at_most(descriptor, max_bytes)
    finally:
        os.close(descriptor)


def move_aside(path: Path) -> str:
    """Rename the file, or whatever is there, to ``<name>.refused``, for people to inspect. Returns the outcome as the
    end of a log line."""
    names = (f"{path.name}.refused{number}" for number in ("", *range(2, MAX_REFUSED + 1)))
    why = ""
    for aside in map(path.with_name, names):
        try:
            path.replace(aside)
        except OSError as error:
            why = why or error.strerror or str(error)
            if error.errno not in NAME_TAKEN:
                break
        else:
            return f"; moved to {aside.name}"
    return f"; it could not be moved aside ({why})"


def remove_durably(path: Path) -> bool:
    """Remove a file so that it stays removed; False when there was none. A directory is moved aside. Raises OSError."""
    try:
        _clear(path)
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True


def sync_directory(directory: Path) -> None:
    """Make renames and removals in the directory survive a power cut. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear(path: Path) -> None:
    """Take away whatever has that name; a directory, which may hold somebody's files, moves aside. Raises OSError."""
    try:
        path.unlink()
    except IsADirectoryError:
        move_aside(path)


def _write(path: str, data: bytes, durable: bool, mode: int) -> None:
    """The file is a new one: an old one is never opened, for it might be a FIFO, on whose reader we would wait."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        _clear(Path(path))
        descriptor = os.open(path, flags, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
