"""Where connections to the admin socket come in; and when nobody has come anywhere for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Sequence
from typing import Protocol

from workers.api_server.core.frame_guard import FrameGuard


class Server(Protocol):
    """`aiohttp.web.Server`, as far as it is needed here."""

    def __call__(self) -> asyncio.Protocol:
        """For one connection."""

    @property
    def connections(self) -> Collection[object]:
        """The connections that are open."""


class Listener(Protocol):
    """A listening end."""

    accepted: int
    """Connections that have come."""

    @property
    def is_busy(self) -> bool:
        """Whether a connection is open."""

    def close(self) -> None:
        """Stop accepting."""


async def until_idle(listeners: Sequence[Listener], timeout_s: float) -> None:
    """Return with all doors closed when no connection was open or has come for so many seconds, or up to twice as many:
    watches and streams are open connections. Wakes once in that time.

    Nobody can be between door and handler then: uvloop, which the loop must be of, takes a connection and calls
    `_accept` in one step, and from the last look to the closed doors it is one step, too.
    """
    seen = -1
    while seen != sum(listener.accepted for listener in listeners) or any(listener.is_busy for listener in listeners):
        seen = sum(listener.accepted for listener in listeners)
        await asyncio.sleep(timeout_s)
    for listener in listeners:
        listener.close()


class AdminListener:
    """The listening end of the admin socket. Belongs to one event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.accepted = 0
        self._listener: asyncio.Server | None = None

    async def open(self, listen: socket.socket) -> None:
        """Serve who comes. Not as create_unix_server does it: that unlinks the socket's path in the end."""
        self._listener = await asyncio.get_running_loop().create_server(self._accept, sock=listen)

    def close(self) -> None:
        """Stop accepting; new connections wait in the backlog. A second call is harmless."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    @property
    def is_busy(self) -> bool:
        """Whether a connection is open."""
        return bool(self._server.connections)

    def _accept(self) -> asyncio.Protocol:
        self.accepted += 1
        return FrameGuard(self._server())
