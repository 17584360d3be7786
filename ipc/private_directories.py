"""Directories of our own, and those above them."""

from __future__ import annotations

import contextlib
import os
from typing import Final

PRIVATE_MODE: Final = 0o700


def make_private(path: str | os.PathLike[str]) -> None:
    """A directory, with all above it: each that is missing is private, whereas `Path.mkdir` leaves those above to the
    umask. One that is there stays as it is. Raises OSError."""
    if os.path.exists(path):
        return
    above = os.path.dirname(path)
    if above:
        make_private(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, PRIVATE_MODE)
