"""Calls into file systems that may never answer, each in a thread and with a deadline.

A call into a network file system whose server is gone waits for as long as the server is, and nothing ends the thread
that made it. So these have threads of their own, of which each subject has one at the most: who waits for a subject's
thread and asks again, waits for that one first.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DEADLINE_S: Final = 90.0
"""Deadline of one call, in seconds: longer than a run of `podman unshare`, so that a step in there fails with its own
error. (Upstream gives all volumes of a pod 123 s: podAttachAndMountTimeout,
pkg/kubelet/volumemanager/volume_manager.go.)"""
PATIENCE_S: Final = 1.0
"""How long a call waits that is made again and again, in seconds."""
TIMED_OUT: Final = "timed out waiting for the file system"
MAX_THREADS: Final = 64
"""Calls at once. When so many hang, others find no thread within their deadline."""


class FsExecutor:
    """The threads of one worker."""

    def __init__(self, deadline_s: float = DEADLINE_S, max_threads: int = MAX_THREADS) -> None:
        self._deadline_s = deadline_s
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix="files")
        self._room = asyncio.Semaphore(max_threads)
        self._in_flight: dict[Hashable, asyncio.Future[Any]] = {}
        self._late: set[Hashable] = set()
        """Subjects whose call has outlasted its deadline and goes on."""

    async def run_unless_hung(
        self, subject: Hashable, function: Callable[[*Ts], T], *args: *Ts, patience_s: float = PATIENCE_S
    ) -> T:
        """As `run`, for what is asked again and again, and can wait until it is asked the next time: while a call of
        that subject hangs, others of it fail at once."""
        if subject in self._late:
            raise TimeoutError(errno.ETIMEDOUT, TIMED_OUT)
        return await self.run(subject, function, *args, deadline_s=patience_s)

    async def run(
        self, subject: Hashable, function: Callable[[*Ts], T], *args: *Ts, deadline_s: float | None = None
    ) -> T:
        """Result of the function. Raises TimeoutError, an OSError, after the deadline: the thread goes on.
        ``deadline_s`` is for calls that take longer and have their own."""
        try:
            async with asyncio.timeout(deadline_s or self._deadline_s) as deadline:
                while (earlier := self._in_flight.get(subject)) is not None:
                    await asyncio.wait({earlier})
                await self._room.acquire()
                return await asyncio.shield(self._begun(subject, function, *args))
        except TimeoutError as error:
            if not deadline.expired():
                raise  # what the file system has said
            if subject in self._in_flight:
                self._late.add(subject)
            raise TimeoutError(errno.ETIMEDOUT, TIMED_OUT) from error

    def is_idle(self, subject: Hashable) -> bool:
        """Whether no thread of that subject works, or hangs."""
        return subject not in self._in_flight

    def close(self) -> None:
        """Threads that hang stay; all others end with their work."""
        self._threads.shutdown(wait=False)

    def _begun(self, subject: Hashable, function: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        work = asyncio.get_running_loop().run_in_executor(self._threads, function, *args)
        self._in_flight[subject] = work
        work.add_done_callback(lambda _: self._ended(subject, work))
        return work

    def _ended(self, subject: Hashable, work: asyncio.Future[Any]) -> None:
        self._room.release()
        if self._in_flight.get(subject) is work:
            del self._in_flight[subject]
            self._late.discard(subject)
        if not work.cancelled():
            work.exception()  # may be nobody's any more
