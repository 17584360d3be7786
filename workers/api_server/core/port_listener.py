"""Where connections to a TCP port come in: at most so many at a time, each within a deadline for its TLS handshake."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.link.eventloop.tasks import BackgroundTasks
from workers.api_server.core.connection_guard import ConnectionGuard
from workers.api_server.core.listener import Server

MAX_CONNECTIONS: Final = 256
"""Most connections to one port at a time; further ones wait in its backlog. A process has 1024 descriptors as a rule,
and each stream needs two more."""
HANDSHAKE_TIMEOUT_S: Final = 10.0
"""How long a client may take for its TLS handshake."""
RETRY_S: Final = 1.0
"""Pause after a connection that could not be taken, for want of descriptors."""

_log: Final = logging.getLogger(__name__)


class PortListener:
    """The listening end of one TCP port. Belongs to one event loop.

    A connection is taken and counted in one step of the loop, so that `close` after a look at `is_busy` in the same
    step loses nobody (see `workers.api_server.core.listener`).
    """

    def __init__(
        self,
        server: Server,
        listening: socket.socket,
        tls: Callable[[], Awaitable[ssl.SSLContext]] | None,
    ) -> None:
        """``tls``: the context for the next connection; None on a plain port. It raises OSError where nobody can be
        served: the connection is closed."""
        self.accepted = 0
        self._server = server
        self._listening = listening
        self._tls = tls
        self._open = 0
        self._is_accepting = self._is_closed = False
        self._tasks = BackgroundTasks()

    @property
    def is_busy(self) -> bool:
        """Whether a connection is open."""
        return self._open > 0

    def open(self) -> None:
        """Serve who comes."""
        self._listening.setblocking(False)
        self._accept_if_room()

    def close(self) -> None:
        """Stop accepting; new connections wait in the backlog. A second call is harmless."""
        self._is_closed = True
        self._stop_accepting()

    async def aclose(self) -> None:
        """Stop accepting, and end handshakes that are under way."""
        self.close()
        await self._tasks.close()

    def _accept_if_room(self) -> None:
        if not (self._is_closed or self._is_accepting) and self._open < MAX_CONNECTIONS:
            self._is_accepting = True
            asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept)

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            asyncio.get_running_loop().remove_reader(self._listening.fileno())

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:
            _log.warning("cannot take a connection: %s", error.strerror or error)
            self._stop_accepting()
            asyncio.get_running_loop().call_later(RETRY_S, self._accept_if_room)
            return
        self.accepted += 1
        self._open += 1
        if self._open >= MAX_CONNECTIONS:
            self._stop_accepting()
        connection.setblocking(False)
        self._tasks.spawn(self._admit(connection), name="handshake")

    async def _admit(self, connection: socket.socket) -> None:
        guard = ConnectionGuard(self._server(), self._lost)
        try:
            context = None if self._tls is None else await self._tls()
            timeouts = {} if context is None else {"ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S}
            await asyncio.get_running_loop().connect_accepted_socket(lambda: guard, connection, ssl=context, **timeouts)
        except OSError as error:  # ssl.SSLError and TimeoutError are
            _log.debug("a connection was not made: %s", error)
            guard.release()
            connection.close()

    def _lost(self) -> None:
        self._open -= 1
        self._accept_if_room()
