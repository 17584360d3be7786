"""Ending a command in a container that runs as a session of its own (setsid), as Podman starts each."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from workers import processes
from workers.pidfd import kill_if

MAX_KILL_ROUNDS: Final = 10
"""How often it is looked for what a command has started meanwhile."""


def kill_session(pid: int) -> None:
    """SIGKILL to a command and what it has started, but for what has made itself a session of its own.

    Reads all of /proc: for a thread. Raises OSError, e.g. EMFILE.
    """
    session = processes.session_of(pid)
    if session in (0, os.getsid(0)):
        return

    def is_in_it(pid: int) -> bool:
        return processes.session_of(pid) == session and processes.is_alive(pid)

    for _ in range(MAX_KILL_ROUNDS):
        found = [pid for pid in processes.pids() if is_in_it(pid)]
        if not [pid for pid in found if kill_if(pid, partial(is_in_it, pid))]:
            return
