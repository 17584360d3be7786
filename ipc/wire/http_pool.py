"""Connections with one HTTP server, of which a few are kept for the next exchanges."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ipc.eventloop.loop_clock import loop_time
from ipc.wire.http_connection import Connection, NothingSentError

C = TypeVar("C", bound=Connection)


class ConnectionPool(Generic[C]):
    """For one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[C]], max_kept: int, max_idle_s: float = math.inf) -> None:
        """``max_kept`` connections are kept while nothing is asked, each for ``max_idle_s`` seconds at the most."""
        self._connect = connect
        self._max_kept = max_kept
        self._max_idle_s = max_idle_s
        self._kept: list[C] = []
        self._in_use: dict[C, int] = {}
        """Connections with an exchange, and the generation in which that began."""
        self._generation = 0

    async def begin(self, request: bytes, *, fresh: bool = False) -> C:
        """A connection that has taken the request, until `end`; with ``fresh`` one that nobody has used. Raises
        OSError: NothingSentError where no byte was sent."""
        generation = self._generation
        connection = (None if fresh else self._take()) or await self._connect()
        self._in_use[connection] = generation
        try:
            try:
                await connection.send(request)
            except NothingSentError:  # the server closed it a moment ago, and all that are kept with it
                dead, connection = connection, await self._connect()
                self._in_use[connection] = self._in_use.pop(dead)
                dead.close()
                await connection.send(request)
        except BaseException:
            self.end(connection)
            raise
        return connection

    def end(self, connection: C) -> None:
        """Keep the connection of an exchange if its answer was read to the end, and else close it."""
        is_current = self._in_use.pop(connection) == self._generation
        if is_current and connection.is_reusable and len(self._kept) < self._max_kept:
            self._kept.append(connection)
        else:
            connection.close()

    def break_off(self) -> None:
        """Close every connection; exchanges under way find theirs broken."""
        self._generation += 1
        self._drop_kept()
        for connection in tuple(self._in_use):
            connection.abandon()

    def close(self) -> None:
        """Keep none any more; exchanges under way go on."""
        self._max_kept = 0
        self._drop_kept()

    def _drop_kept(self) -> None:
        while self._kept:
            self._kept.pop().close()

    def _take(self) -> C | None:
        """The one that was used last, of those that still stand."""
        while self._kept:
            kept = self._kept.pop()
            if kept.is_open and loop_time() - kept.used_at < self._max_idle_s:
                return kept
            kept.close()
        return None
