"""When the event history goes to disk: at most a second after it changed, in a thread of its own, never for nothing.

A disk that cannot be written to costs only what the file is for: it is said once, tried again now and then, and what
was missed is written as soon as that works.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ipc.api.v1.event import Event
from ipc.host.clock import Clock
from supervisor.record.event_log import EventLog, EventLogError
from supervisor.record.recorder import EventRecorder

RETRY_S: Final = 10.0
"""After a write that failed."""
LAST_WRITE_S: Final = 2.0
"""How long the end of the agent waits for the disk."""

log = logging.getLogger("rootlet.events")


class EventWriter:
    """Owns the file. The history stays its recorder's."""

    def __init__(self, log_file: EventLog, clock: Clock) -> None:
        self._log = log_file
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")
        self._writing: asyncio.Future[None] | None = None
        self._saved = 0
        """Everything up to this sequence number is on disk."""
        self._retry_at = 0.0
        """Monotonic seconds; 0.0 when the last write succeeded."""

    def restore(self) -> tuple[Event, ...]:
        """What an earlier life of the agent has left."""
        try:
            return self._log.load()
        except EventLogError as error:
            log.error("%s", error)
            return ()

    def keep(self, history: EventRecorder) -> None:
        """Write what is new, unless nothing is, or a write is under way. To be called every second."""
        if self._writing is None and history.sequence != self._saved and self._clock.now().mono >= self._retry_at:
            self._begin(history)

    async def close(self, history: EventRecorder) -> None:
        """Write the last ones, if the disk takes them in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITE_S):
                await self._ended()
                if history.sequence != self._saved:
                    self._begin(history)
                await self._ended()
        self._thread.shutdown(wait=False)

    def _begin(self, history: EventRecorder) -> None:
        changed, everything = history.changed_after(self._saved), history.events()
        write = asyncio.get_running_loop().run_in_executor(self._thread, self._log.write, changed, everything)
        write.add_done_callback(self._on_end(history.sequence))
        self._writing = write

    async def _ended(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _on_end(self, sequence: int) -> Callable[[asyncio.Future[None]], None]:
        def ended(write: asyncio.Future[None]) -> None:
            self._writing = None
            error = write.exception()
            if error is None:
                self._succeeded(sequence)
            elif isinstance(error, OSError):
                self._failed(error)
            else:
                raise error

        return ended

    def _succeeded(self, sequence: int) -> None:
        self._saved = sequence
        if self._retry_at:
            log.info("events are kept on disk again")
        self._retry_at = 0.0

    def _failed(self, error: OSError) -> None:
        if not self._retry_at:
            log.warning("events are not kept on disk, only in memory: %s", error.strerror or error)
        self._retry_at = self._clock.now().mono + RETRY_S
