"""Batches: things of one kind that come shortly after one another. Other work waits until the last of them has come.

A cluster binds many pods at once, and they pass through three processes on the same CPUs. The follow-up work of a pod
costs more CPU than its start, so the first pods would hold up the last. That work waits for the end of the batch, at
most LONGEST_S. A thing that comes alone waits for ``alone_s``, by default not at all.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from ipc.link.eventloop.loop_clock import loop_time

QUIET_S: Final = 0.01
"""A batch is over after this time without another thing, in seconds."""
LONGEST_S: Final = 0.1
"""A batch holds other work up for at most this time, in seconds."""


class Batch:
    """The batch under way, if there is one. Pure: times in seconds of one monotonic clock."""

    def __init__(self, alone_s: float = 0.0) -> None:
        """``alone_s``: how long a batch of one waits for a second thing, in seconds."""
        self._alone_s = alone_s
        self._began_at = self._last_at = -math.inf

    def came(self, now: float) -> None:
        """A thing has come."""
        if now - self._last_at > QUIET_S:
            self._began_at = now
        self._last_at = now

    def left_s(self, now: float) -> float:
        """Seconds until the batch is over, if nothing more comes."""
        quiet_s = self._alone_s if self._last_at == self._began_at else QUIET_S
        return max(0.0, min(self._last_at + quiet_s, self._began_at + LONGEST_S) - now)


class BatchGate:
    """The gate is closed while a batch comes. For one event loop."""

    def __init__(self, alone_s: float = 0.0) -> None:
        """See `Batch`."""
        self._batch = Batch(alone_s)
        self._over: asyncio.Future[None] | None = None

    def came(self) -> None:
        """A thing has come."""
        self._batch.came(loop_time())

    async def over(self) -> None:
        """Return when the batch is over, at once if there is none."""
        over = self._over
        if over is None:
            left_s = self._batch.left_s(loop_time())
            if not left_s:
                return
            loop = asyncio.get_running_loop()
            over = self._over = loop.create_future()
            loop.call_later(left_s, self._look, over)
        await asyncio.shield(over)

    def _look(self, over: asyncio.Future[None]) -> None:
        """One timer serves all that wait."""
        if left_s := self._batch.left_s(loop_time()):
            asyncio.get_running_loop().call_later(left_s, self._look, over)
        else:
            self._over = None
            over.set_result(None)
