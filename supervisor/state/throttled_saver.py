"""The throttled saver writes a part of the agent's state to disk: after a change, not too often, in its own thread.

A write that fails is logged once and tried again, and the newest state is written as soon as that works.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from ipc.host.clock import Clock

LAST_WRITE_S: Final = 2.0
"""How long the end of the agent waits for the disk, in seconds."""

V = TypeVar("V")
Write = Callable[[], None]
"""Blocks, in the thread. Raises OSError."""


class ThrottledSaver(Generic[V]):
    """Owns the thread. ``V`` is the version of the state: another version than the written one is a change."""

    def __init__(
        self,
        subject: str,
        written: V,
        clock: Clock,
        log: logging.Logger,
        *,
        period_s: float = 0.0,
        retry_s: float = 0.0,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """``subject`` is the plural in its log lines, ``written`` the version that is on disk. Two checks for
        changes are ``period_s`` apart, after a write that failed also ``retry_s``. ``ended`` is called after every
        write, also one that failed."""
        self.written = written
        self._subject = subject
        self._clock = clock
        self._log = log
        self._period_s = period_s
        self._retry_s = retry_s
        self._ended = ended
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=subject)
        self._writing: asyncio.Future[None] | None = None
        self._next_at = 0.0
        """Monotonic seconds."""
        self._is_failing = False
        self._is_lost = False
        """The file has gone away: it is written whatever its version is."""

    def is_due(self, version: V) -> bool:
        """Whether there is anything to write."""
        return self._is_lost or version != self.written

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._is_lost = True

    def restored(self, version: V) -> None:
        """Take a version for the one on disk: it was read from there."""
        self.written = version

    def is_kept(self, is_enough: Callable[[V], bool]) -> bool:
        """Whether the version on disk is enough for who waits. Nobody waits while writes fail."""
        return self._is_failing or is_enough(self.written)

    def keep(self, version: Callable[[], V], write: Callable[[V], Write], *, is_urgent: bool = False) -> None:
        """Begin a write, if there is a change, none is under way and it is not too early. To be called every second.

        ``write`` is called at once and gathers the data that its result writes later. ``is_urgent``: somebody waits for
        it, and it is not too early unless the last one has failed.
        """
        now = self._clock.now().mono
        if self._writing is not None or (now < self._next_at and (self._is_failing or not is_urgent)):
            return
        self._next_at = now + self._period_s
        self._begin(version(), write)

    async def close(self, version: Callable[[], V], write: Callable[[V], Write]) -> None:
        """Write the last change within `LAST_WRITE_S`, then let the thread go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITE_S):
                await self.settled()
                self._begin(version(), write)
                await self.settled()
        self._thread.shutdown(wait=False)

    def _begin(self, version: V, write: Callable[[V], Write]) -> None:
        if self.is_due(version):
            self._is_lost = False
            self._writing = asyncio.get_running_loop().run_in_executor(self._thread, write(version))
            self._writing.add_done_callback(self._on_end(version))

    async def settled(self) -> None:
        """Wait for the end of the write that is under way."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _on_end(self, version: V) -> Callable[[asyncio.Future[None]], None]:
        def ended(write: asyncio.Future[None]) -> None:
            self._writing = None
            error = write.exception()
            if error is None:
                self._succeeded(version)
            elif isinstance(error, OSError):
                self._failed(error)
            else:
                raise error
            self._ended()

        return ended

    def _succeeded(self, version: V) -> None:
        self.written = version
        if self._is_failing:
            self._log.info("%s are kept on disk again", self._subject)
        self._is_failing = False

    def _failed(self, error: OSError) -> None:
        if not self._is_failing:
            self._log.error("%s are not kept on disk, only in memory: %s", self._subject, error.strerror or error)
        self._is_failing = self._is_lost = True
        self._next_at = max(self._next_at, self._clock.now().mono + self._retry_s)
