"""Where connections come in; knows when nobody has come for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import Protocol

from workers.api_server.core.frame_guard import FrameGuard


class Server(Protocol):
    """`aiohttp.web.Server`, as far as it is needed here."""

    def __call__(self) -> asyncio.Protocol:
        """For one connection."""

    @property
    def connections(self) -> Collection[object]:
        """The connections that are open."""


class Listener:
    """The listening end. Belongs to one event loop, which must be uvloop's for `until_idle` (see there)."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._accepted = 0
        self._listener: asyncio.Server | None = None

    async def open(self, listen: socket.socket) -> None:
        """Serve who comes. Not as create_unix_server does it: that unlinks the socket's path in the end."""
        self._listener = await asyncio.get_running_loop().create_server(self._accept, sock=listen)

    def close(self) -> None:
        """Stop accepting; new connections wait in the backlog. A second call is harmless."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def until_idle(self, timeout_s: float) -> None:
        """Return with the door closed when no connection was open or has come for so many seconds, or up to twice as
        many: watches and streams are open connections. Wakes once in that time.

        Nobody can be between door and handler then: uvloop takes a connection and calls `_accept` in one step, and from
        the last look to the closed door it is one step, too.
        """
        seen = -1
        while seen != self._accepted or self._server.connections:
            seen = self._accepted
            await asyncio.sleep(timeout_s)
        self.close()

    def _accept(self) -> asyncio.Protocol:
        self._accepted += 1
        return FrameGuard(self._server())
