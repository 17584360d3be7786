"""Connections with one server, of which a few are kept for the next exchanges."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

from ipc.link.eventloop.loop_clock import loop_time
from workers.kubeclient.connection import Address, Connection, connect

MAX_KEPT: Final = 10
"""Connections that are kept while nothing is asked: as many as a burst of requests of one kind has under way, else each
of its waves would begin with handshakes."""
MAX_IDLE_S: Final = 75.0
"""How long one is kept that nobody uses; an API server closes it after 90 s."""
CONNECT_DEADLINE_S: Final = 30.0
"""How long a connection may take to come about, TLS included (client-go's dialer)."""


class ConnectionPool:
    """For one event loop."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._context: ssl.SSLContext | None = None
        self._kept: list[Connection] = []
        self._in_use: dict[Connection, None] = {}

    def use(self, context: ssl.SSLContext | None) -> None:
        """Credentials of new connections. Connections with other ones are closed, those in use too, so that nobody
        goes on as somebody who it is no more (pkg/kubelet/certificate/transport.go, updateTransport)."""
        if context is not self._context:
            self._context = context
            self.close()

    @contextlib.asynccontextmanager
    async def exchange(self, request: bytes, *, fresh: bool = False) -> AsyncIterator[Connection]:
        """A connection that has taken the request; with ``fresh`` one that nobody has used. It is kept if its answer
        was read to the end, and else closed. Raises OSError."""
        connection = None if fresh else self._take()
        if connection is None:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                connection = await connect(self._address, self._context)
        context = self._context
        self._in_use[connection] = None
        try:
            connection.send(request)
            yield connection
        finally:
            self._in_use.pop(connection, None)
            if connection.is_reusable and len(self._kept) < MAX_KEPT and context is self._context:
                self._kept.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close every connection; exchanges under way find theirs broken."""
        while self._kept:
            self._kept.pop().close()
        for connection in tuple(self._in_use):
            connection.close()

    def _take(self) -> Connection | None:
        """The one that was used last, of those that still stand."""
        now = loop_time()
        while self._kept:
            kept = self._kept.pop()
            if kept.is_open and now - kept.used_at < MAX_IDLE_S:
                return kept
            kept.close()
        return None
