"""Two agents of one instance name cannot run: an flock(2), which the kernel releases when its last holder dies.

The agent's children inherit it through fork, so a successor cannot start while any of them is still there.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from ipc.host import clock
from ipc.host.private_directories import make_private
from ipc.host.regular_files import open_regular_file

LEAVING_WINDOW_S = 15.0
"""How long to wait for the children of a master that is dead already."""
POLL_PERIOD_S = 0.05


class InstanceBusy(Exception):
    """Another agent holds the lock."""


def acquire(path: Path) -> int:
    """The lock's file descriptor, to be kept open for as long as the agent lives.

    Raises:
        InstanceBusy: a living agent holds it, or the children of a dead one do not leave; the text names the pid.
        OSError: the file cannot be made.
    """
    make_private(path.parent)
    fd = open_regular_file(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    deadline = clock.monotonic() + LEAVING_WINDOW_S
    while not _try_lock(fd):
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
        if _is_alive(holder) or clock.monotonic() > deadline:
            os.close(fd)
            raise InstanceBusy(f"an agent of this instance runs already (pid {holder or 'unknown'}, lock {path})")
        time.sleep(POLL_PERIOD_S)
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: str) -> bool:
    """A zombie is dead: its parent has only not reaped it yet."""
    try:
        return pid.isdigit() and Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
