"""Directories of the agent, and those above them."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

PRIVATE_MODE: Final = 0o700
_OTHERS: Final = 0o077


def make_private(path: str | os.PathLike[str]) -> None:
    """A directory, with all above it: each that is missing is private, whereas `Path.mkdir` leaves those above to the
    umask. One that is there stays as it is. Raises OSError."""
    try:
        _mkdir(path)
    except FileNotFoundError:
        above = os.path.dirname(path)
        if not above:
            raise
        make_private(above)
        _mkdir(path)


def _mkdir(path: str | os.PathLike[str]) -> None:
    """Make it, unless it is there. Most are missing alone, and their parents are there: one call each."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, PRIVATE_MODE)


def ensure_private(path: str | os.PathLike[str]) -> None:
    """`make_private`, and one of ours that was there already is closed to all others. Raises OSError."""
    make_private(path)
    found = os.stat(path)
    if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
        os.chmod(path, stat.S_IMODE(found.st_mode) & ~_OTHERS)
