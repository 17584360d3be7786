"""Files of our own state: there whole or not at all, whatever is killed or loses power, and read with suspicion.

The only writer of such files in the project.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

PRIVATE_FILE_MODE: Final = 0o600
PRIVATE_PROGRAM_MODE: Final = 0o700


class UntrustedFile(Exception):
    """Why a file's content is not believed."""


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
    path; what an earlier one left behind when it was killed is overwritten. Raises OSError.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.tmp")
    try:
        _write(temporary, data, durable, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """A regular file that is no larger than that; a FIFO cannot hold us up. Raises UntrustedFile and OSError."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedFile("it is not a regular file")
        if status.st_size > max_bytes:
            raise UntrustedFile(f"it is larger than {max_bytes} bytes")
        return file.read(max_bytes)


def move_aside(path: Path) -> str:
    """Rename the file to ``<name>.refused``, for people to inspect. Returns the outcome as the end of a log line."""
    aside = path.with_name(f"{path.name}.refused")
    try:
        path.replace(aside)
    except OSError as error:
        return f"; it could not be moved aside ({error.strerror})"
    return f"; moved to {aside.name}"


def remove_durably(path: Path) -> bool:
    """Remove a file so that it stays removed; False when there was none. Raises OSError."""
    try:
        path.unlink()
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


def _write(path: str, data: bytes, durable: bool, mode: int) -> None:
    with os.fdopen(_new(path, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _new(path: str, mode: int) -> int:
    """Descriptor of a file that was not there: what an earlier writer left, or somebody else put there, goes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        return os.open(path, flags, mode)
    os.unlink(path)
    return os.open(path, flags, mode)
