"""A bell between processes: any may ring it, one waits for it on its event loop. For what lies in shared memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref


class Bell:
    """An eventfd that all forks inherit. Rung before anybody waits, it stays rung."""

    def __init__(self) -> None:
        """Raises OSError, e.g. EMFILE."""
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)

    def ring(self) -> None:
        """Wake whoever waits, now or later."""
        with contextlib.suppress(BlockingIOError):  # it has been rung 2^64 times
            os.eventfd_write(self._fd, 1)

    async def wait(self) -> None:
        """Wait until the bell was rung, once for any number of rings. For one task of one process at a time."""
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, rung.set)
        try:
            await rung.wait()
        finally:
            loop.remove_reader(self._fd)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
