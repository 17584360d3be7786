"""Giving files of a volume to the user as whom its pod's containers run."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from workers.fs import openat2
from workers.userns.steps.group import AT_EMPTY_PATH
from workers.userns.steps.syscalls import LIBC, Refused, checked


def give_to_user(directory: str, paths: Sequence[str], uid: int) -> None:
    """Plain files below the directory to that user; their groups and modes stay (AtomicWriter.writePayloadToDir,
    pkg/volume/util/atomic_writer.go). Raises OSError, Refused."""
    with openat2.opened(None, directory, os.O_PATH, openat2.NO_SYMLINKS) as root:
        for path in paths:
            with openat2.opened(root, path, os.O_PATH | os.O_NOFOLLOW, openat2.BENEATH) as file:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise Refused(f"{path} is no plain file")
                checked(LIBC.fchownat(file, b"", uid, -1, AT_EMPTY_PATH), path)
