"""Connections with one API server, of which a few are kept for the next exchanges."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

from ipc.wire import http_pool
from ipc.wire.http_connection import Connection
from workers.kubeclient.connection import Address, connect

MAX_KEPT: Final = 10
"""Connections that are kept while nothing is asked: as many as a burst of requests of one kind has under way, else each
of its waves would begin with handshakes."""
MAX_IDLE_S: Final = 75.0
"""How long one is kept that nobody uses; an API server closes it after 90 s."""
CONNECT_DEADLINE_S: Final = 30.0
"""How long a connection may take to come about, TLS included (client-go's dialer)."""


class ConnectionPool(http_pool.ConnectionPool[Connection]):
    """Connections of one identity."""

    def __init__(self, address: Address) -> None:
        super().__init__(self._connected, MAX_KEPT, MAX_IDLE_S)
        self._address = address
        self._context: ssl.SSLContext | None = None

    def use(self, context: ssl.SSLContext | None) -> None:
        """Credentials of new connections. Connections with other ones are closed, those in use too, so that nobody
        goes on as somebody who it is no more (pkg/kubelet/certificate/transport.go, updateTransport)."""
        if context is not self._context:
            self._context = context
            self.break_off()

    @contextlib.asynccontextmanager
    async def exchange(self, request: bytes, *, fresh: bool = False) -> AsyncIterator[Connection]:
        """A connection that has taken the request, as `begin` gives it; at the end of the block as `end` leaves it."""
        connection = await self.begin(request, fresh=fresh)
        try:
            yield connection
        finally:
            self.end(connection)

    async def _connected(self) -> Connection:
        async with asyncio.timeout(CONNECT_DEADLINE_S):
            return await connect(self._address, self._context)
