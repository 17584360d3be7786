"""Waiting for the end of processes that are not our children, by pidfd: no thread, no polling, no reused pids."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable


def open_pidfd(pid: int) -> int | None:
    """A pidfd of that process; None when there is none. Works for processes of other users and user namespaces.

    Raises OSError, e.g. EMFILE.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def kill_if(pid: int, is_it: Callable[[], bool]) -> bool:
    """SIGKILL to the process of that pid if ``is_it``, which is asked once the pid cannot pass to another process.

    Whoever owns a user namespace may signal every process in it (kernel/signal.c, kill_ok_by_cred): no sub-uid is in
    the way. False for what has ended or is something else. Raises OSError, e.g. EMFILE.
    """
    pidfd = open_pidfd(pid)
    if pidfd is None:
        return False
    try:
        if not is_it():
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


async def wait_ended(pidfd: int, timeout_s: float) -> bool:
    """Wait until the process behind a pidfd has ended; False when the time is over. The pidfd stays the caller's."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        async with asyncio.timeout(timeout_s):
            await ended.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(pidfd)
    return True
