"""A file system that never answers: FUSE, of which nobody ever reads a request. What a dead server's NFS is like."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FUSERMOUNT: Final = "fusermount3"
DEADLINE_S: Final = 30.0


def is_there() -> bool:
    """Whether this host can have one."""
    return shutil.which(FUSERMOUNT) is not None and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextmanager
def hung(directory: Path) -> Iterator[Path]:
    """A directory on it, mounted there. At the end all that waits for it fails with ENOTCONN."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        told = {**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}
        words = (FUSERMOUNT, "-o", "fsname=hung", "--", str(directory))
        subprocess.run(words, env=told, pass_fds=(theirs.fileno(),), check=True, timeout=DEADLINE_S)
        _, (device,), _, _ = socket.recv_fds(ours, 1, 1)
    try:
        yield directory / "below"
    finally:
        os.close(device)
        subprocess.run((FUSERMOUNT, "-u", "-z", str(directory)), check=True, timeout=DEADLINE_S)
