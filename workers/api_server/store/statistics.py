"""Snapshots of statistics for whoever serves them: read from shared memory, collected when somebody asks."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.shm.statistics import SNAPSHOTS, StatisticsBuffer
from workers.api_server.core.status_errors import unavailable
from workers.statsapi.values import Snapshot, decode_snapshot

MAX_AGE_S: Final = 15.0
"""Oldest snapshot that is an answer: housekeeping comes at the latest after so long."""
WAIT_S: Final = 5.0
"""How long a request waits for the first snapshot."""


class Statistics:
    """The reader of the agent's statistics. One for the whole process: it waits for all requests together."""

    def __init__(self, buffer: StatisticsBuffer, clock: Clock) -> None:
        self._buffer = buffer
        self._clock = clock
        self._tasks = BackgroundTasks()
        self._news: asyncio.Task[None] | None = None
        self._decoded: tuple[int, Snapshot] | None = None

    async def snapshot(
        self, *, rates: bool = False, max_age_s: float = MAX_AGE_S, wait_s: float = WAIT_S, lasting: bool = True
    ) -> Snapshot:
        """The newest snapshot, of at most that age in seconds; it is waited for when there is none.

        ``rates`` waits for the second one after a time in which nobody has asked, which has CPU use as a rate. An older
        one is the answer when no newer one comes within ``wait_s``: its times say how old. Not ``lasting``: this one is
        enough, and none is collected after it. Raises ApiError 503 when there is none at all: the node worker may be
        about to start.
        """
        asked_at = self._clock.now().mono
        self._buffer.ask(asked_at, asked_at - max_age_s, lasting=lasting)
        try:
            async with asyncio.timeout(wait_s):
                while (found := self._newest()) is None or not _serves(found, asked_at - max_age_s, rates):
                    await self._next()
        except TimeoutError:
            if found is None:
                raise unavailable("there are no statistics yet") from None
        return found

    async def history(self, count: int) -> tuple[Snapshot, ...]:
        """Up to ``count`` snapshots, oldest first. Raises ApiError 503."""
        newest = await self.snapshot()
        found = [newest]
        for back in range(1, min(count, SNAPSHOTS)):
            older = _decoded(self._buffer.read(back))
            if older is None or older.number >= found[-1].number:
                break
            found.append(older)
        return tuple(reversed(found))

    def _newest(self) -> Snapshot | None:
        """Decoded once for all requests until the next."""
        count = self._buffer.count
        if self._decoded is None or self._decoded[0] != count or not count:
            found = _decoded(self._buffer.read())
            self._decoded = None if found is None else (count, found)
        return self._decoded[1] if self._decoded is not None else None

    async def _next(self) -> None:
        if self._news is None or self._news.done():
            self._news = self._tasks.spawn(self._buffer.published.wait(), name="the next statistics")
        await asyncio.shield(self._news)

    async def close(self) -> None:
        """Wait no more."""
        await self._tasks.close()


def _serves(snapshot: Snapshot, not_before: float, rates: bool) -> bool:
    cpu = snapshot.node.cpu
    return snapshot.mono >= not_before and (not rates or (cpu is not None and cpu.nano_cores is not None))


def _decoded(packed: bytes | None) -> Snapshot | None:
    try:
        return decode_snapshot(packed) if packed is not None else None
    except msgspec.DecodeError:
        return None
