"""Waiting for the end of processes that are not our children, by pidfd: no thread, no polling, no reused pids."""

from __future__ import annotations

import asyncio
import os


def open_pidfd(pid: int) -> int | None:
    """A pidfd of that process; None when there is none. Works for processes of other users and user namespaces.

    Raises OSError, e.g. EMFILE.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


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
