"""Runs the pulls that the master has given a turn. None of them delays another, or anything else of the node worker."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ipc.clock import Clock
from ipc.messages import PullEnded, PullProgress
from workers.runtime import ErrorKind, Runtime, RuntimeCallError

PROGRESS_PERIOD_S: Final = 5.0
"""How often a pull reports at most how far it has got, in seconds."""
MAX_PULLS: Final = 100
"""Pulls under way. Each has a connection and a thread of its own; how many there are is the master's decision."""

Send = Callable[[PullProgress | PullEnded], Awaitable[None]]

log = logging.getLogger(__name__)


class _Flight(msgspec.Struct, frozen=True):
    work: asyncio.Task[str]
    report: asyncio.Task[None]


class ImagePuller:
    """The pulls under way, one per image. Each one begun is answered by exactly one PullEnded."""

    def __init__(self, runtime: Runtime, clock: Clock, send: Send) -> None:
        self._runtime = runtime
        self._clock = clock
        self._send = send
        self._flights: dict[str, _Flight] = {}

    async def start(self, reference: str) -> None:
        """Begin a pull. The runtime's verb has the deadline."""
        if reference in self._flights or len(self._flights) >= MAX_PULLS:
            log.error("protocol error: %s is to be pulled, and %d pulls are under way", reference, len(self._flights))
            await self._send(PullEnded(reference=reference, error=ErrorKind.INTERNAL, message="too many pulls"))
            return
        words: deque[str] = deque(maxlen=1)
        work = asyncio.create_task(self._runtime.pull_image(reference, words.append), name=f"pull {reference}")
        report = asyncio.create_task(self._report(reference, work, words), name=f"report {reference}")
        self._flights[reference] = _Flight(work, report)

    def cancel(self, reference: str) -> None:
        """Break it off, if it has not come to its end."""
        flight = self._flights.get(reference)
        if flight is not None:
            flight.work.cancel()

    async def close(self) -> None:
        """Break off everything; nobody is told."""
        tasks = [task for flight in self._flights.values() for task in (flight.report, flight.work)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _report(self, reference: str, work: asyncio.Task[str], words: deque[str]) -> None:
        started_at = self._clock.now().mono
        while not (await asyncio.wait({work}, timeout=PROGRESS_PERIOD_S))[0]:
            if words:
                await self._send(PullProgress(reference=reference, words=words.pop()))
        del self._flights[reference]
        took_s = self._clock.now().mono - started_at
        await self._send(_ended(reference, work, took_s))


def _ended(reference: str, work: asyncio.Task[str], took_s: float) -> PullEnded:
    """How a pull has ended. An unexpected error is an answer, too."""
    if work.cancelled():
        return PullEnded(reference=reference, error=ErrorKind.PULL, message="broken off", took_s=took_s)
    error = work.exception()
    if error is None:
        return PullEnded(reference=reference, image_id=work.result(), took_s=took_s)
    if isinstance(error, RuntimeCallError):
        return PullEnded(reference=reference, error=error.kind, message=error.message, took_s=took_s)
    log.error("pull of %s failed", reference, exc_info=error)
    message = f"{type(error).__name__}: {error}"
    return PullEnded(reference=reference, error=ErrorKind.INTERNAL, message=message, took_s=took_s)
