"""Ending a command in a container that runs as a session of its own (setsid), as Podman starts each."""

from __future__ import annotations

import errno
import os
import time
from functools import partial
from typing import Final

from workers.proc import procfs
from workers.proc.pidfd import kill_if

MAX_KILL_ROUNDS: Final = 10
"""Most scans for processes that a command has started meanwhile."""
KILL_ROUND_S: Final = 0.05
"""How long a round waits for what was killed to end, in seconds."""


def kill_session(pid: int) -> None:
    """SIGKILL to a command and what it has started, but for what has made itself a session of its own.

    Reads all of /proc: for a thread. Raises OSError, e.g. EMFILE; EAGAIN when they are started faster than they end.
    """
    session = procfs.session_of(pid)
    if session in (0, os.getsid(0)):
        return

    def is_in_it(pid: int) -> bool:
        return procfs.session_of(pid) == session and procfs.is_alive(pid)

    for _ in range(MAX_KILL_ROUNDS):
        found = [pid for pid in procfs.pids() if is_in_it(pid)]
        if not [pid for pid in found if kill_if(pid, partial(is_in_it, pid))]:
            return
        time.sleep(KILL_ROUND_S)
    raise OSError(errno.EAGAIN, "its processes still start new ones, or do not end")
