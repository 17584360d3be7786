"""Files that are there whole or not at all, whatever is killed or loses power."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

PRIVATE_FILE_MODE: Final = 0o600
PRIVATE_DIRECTORY_MODE: Final = 0o700


def ensure_private_directory(directory: Path) -> None:
    """Make the directory (0700) and what is missing above it. Raises OSError."""
    directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by a private file with ``data``: temporary file, fsync, rename, fsync of the directory.

    The temporary name begins with a dot, so that no manifest reader takes it for a manifest. There is one writer per
    path; what an earlier one left behind when it was killed is overwritten. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        _write_durably(temporary, data)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


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


def _write_durably(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, PRIVATE_FILE_MODE), "wb") as file:
        os.fchmod(file.fileno(), PRIVATE_FILE_MODE)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
