"""Reads a file of a volume that any user of a container may have written.

What lies in a tmpfs shows in Podman's mount namespace only, and what another user of a container keeps to itself only
root in there may read; each time costs a process. All other files are the agent's user's to read.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from workers.fs.regular_file import read_scoped
from workers.userns.steps.reading import read_file
from workers.userns.unshare import Unshare


def read_volume_file(volume: Path, path: str, max_bytes: int, unshare: Unshare, *, in_memory: bool = False) -> bytes:
    """The first bytes of a regular file below ``volume``. A symlink leads to what it would lead to with the volume as
    root. Blocks. Raises OSError, UnshareError."""
    if not in_memory:
        with contextlib.suppress(PermissionError):
            return read_scoped(str(volume), path, max_bytes)
    arguments = {"root": os.path.realpath(volume), "path": path, "max_bytes": max_bytes}
    ((number, data),) = unshare.run([(read_file.__name__, arguments)])
    if number:
        raise OSError(number, os.strerror(number), str(volume / path))
    return bytes(data, "latin-1")
