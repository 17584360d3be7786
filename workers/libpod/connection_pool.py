"""Exchanges with Podman on connections of which a few are kept for the next ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ipc.link.eventloop.loop_clock import loop_time
from workers.libpod.connection import Connection, NothingSentError

STARTING_POLL_S: Final = 0.02
"""Between two tries to connect to a service that is being started, in seconds."""
MAX_KEPT: Final = 4
"""Connections that are kept while nothing is asked; each costs Podman's service a goroutine."""


class ConnectionPool:
    """For one event loop."""

    def __init__(self, path: str, starting_s: float = 0.0) -> None:
        """``starting_s``: how long the service may take, from the first exchange on, until it listens."""
        self._path = path
        self._starting_s = starting_s
        """0 from then on, or when it has not."""
        self._kept: list[Connection] = []
        self._in_use: set[Connection] = set()
        self._is_closed = False

    async def begin(self, request: bytes) -> Connection:
        """A connection that has taken the request, until `end`. Raises NothingSentError, and OSError when it broke off
        later."""
        connection = await self._first_of(self._take)
        try:
            try:
                await connection.send(request)
            except NothingSentError:  # the service closed it a moment ago
                connection = self._replace(connection)
                await connection.send(request)
        except BaseException:
            self.end(connection)
            raise
        return connection

    def end(self, connection: Connection) -> None:
        """Keep the connection of an exchange if its answer was read to the end, and else close it."""
        self._in_use.discard(connection)
        if connection.is_reusable and len(self._kept) < MAX_KEPT and not self._is_closed:
            self._kept.append(connection)
        else:
            connection.close()

    def break_off(self) -> None:
        """End the exchanges under way: they find their connections broken."""
        for connection in self._in_use:
            connection.break_off()

    def close(self) -> None:
        """Keep none any more; exchanges under way go on."""
        self._is_closed = True
        while self._kept:
            self._kept.pop().close()

    async def connect(self) -> Connection:
        """A connection of the caller's own. Raises NothingSentError."""
        return await self._first_of(lambda: Connection(self._path))

    async def _first_of(self, make: Callable[[], Connection]) -> Connection:
        """A connection to a service that may have been started this moment: nobody has to find out by a failed call,
        whose repetitions get rarer, and after which everything is listed once more."""
        if not self._starting_s:
            return make()
        until = loop_time() + self._starting_s
        while True:
            try:
                connection = make()
            except NothingSentError:
                if not self._starting_s or loop_time() >= until:
                    self._starting_s = 0.0
                    raise
            else:
                self._starting_s = 0.0
                return connection
            await asyncio.sleep(STARTING_POLL_S)

    def _take(self) -> Connection:
        """The one that was used last, of those that still stand, or a new one."""
        while self._kept:
            kept = self._kept.pop()
            if kept.is_open:
                self._in_use.add(kept)
                return kept
            kept.close()
        return self._new()

    def _new(self) -> Connection:
        connection = Connection(self._path)
        self._in_use.add(connection)
        return connection

    def _replace(self, dead: Connection) -> Connection:
        """A new one: all that are kept were closed at the same moment."""
        fresh = self._new()
        self._in_use.discard(dead)
        dead.close()
        return fresh
