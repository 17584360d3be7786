"""So many calls at a time, and among those that wait the ones whose sync began first.

With a plain queue three hundred pods would all get their sandbox before the first of them got its container. In this
order the first are up, observed and reported while the last have not begun, for the same time in total.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator


class Turns:
    """A semaphore with an order. Belongs to one event loop."""

    def __init__(self, at_a_time: int) -> None:
        self._free = at_a_time
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()

    @contextlib.asynccontextmanager
    async def turn(self, order: int) -> AsyncIterator[None]:
        """Hold one of the turns; the lowest ``order`` gets the next that is free, of equals the one that came first."""
        await self._take(order)
        try:
            yield
        finally:
            self._give()

    async def _take(self, order: int) -> None:
        if self._free:
            self._free -= 1
            return
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrivals), given))
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self._give()  # it was ours already
            raise

    def _give(self) -> None:
        while self._waiting:
            _, _, given = heapq.heappop(self._waiting)
            if not given.done():
                given.set_result(None)
                return
        self._free += 1
