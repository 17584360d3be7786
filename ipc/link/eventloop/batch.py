"""Things of one kind that come one soon after the other: what else is to be done waits until the last of them has come.

Pods that a cluster binds at once go through three processes on the same CPUs. What each of them causes takes more CPU
than its way does, so the first ones would hold up the last. That work waits for the moment of the burst, and not longer
than LONGEST_S; what a thing causes that comes alone waits for nobody, or for so long as is said.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from ipc.link.eventloop.loop_clock import loop_time

QUIET_S: Final = 0.01
"""After so many seconds without another one a burst is over."""
LONGEST_S: Final = 0.1
"""A burst that goes on for longer holds nothing up any more, in seconds."""


class Batch:
    """The burst under way, if there is one. Pure: times in seconds of one monotonic clock."""

    def __init__(self, alone_s: float = 0.0) -> None:
        """``alone_s``: how long the first one waits for a second, in seconds."""
        self._alone_s = alone_s
        self._began_at = self._last_at = -math.inf

    def came(self, now: float) -> None:
        """Another one has come."""
        if now - self._last_at > QUIET_S:
            self._began_at = now
        self._last_at = now

    def left_s(self, now: float) -> float:
        """Seconds until the burst is over as far as is known now."""
        quiet_s = self._alone_s if self._last_at == self._began_at else QUIET_S
        return max(0.0, min(self._last_at + quiet_s, self._began_at + LONGEST_S) - now)


class BatchGate:
    """Lets nobody pass while things come. For one event loop."""

    def __init__(self, alone_s: float = 0.0) -> None:
        """See `Batch`."""
        self._batch = Batch(alone_s)
        self._over: asyncio.Future[None] | None = None

    def came(self) -> None:
        """Another one has come."""
        self._batch.came(loop_time())

    async def over(self) -> None:
        """Return when none comes any more, at once if none has come."""
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
        """One timer, however many wait."""
        if left_s := self._batch.left_s(loop_time()):
            asyncio.get_running_loop().call_later(left_s, self._look, over)
        else:
            self._over = None
            over.set_result(None)
