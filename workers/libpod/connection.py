"""Connections with Podman's Unix socket."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from ipc.eventloop.loop_clock import loop_time
from ipc.wire import http_connection
from ipc.wire.duplex import Duplex
from ipc.wire.http_answer import SWITCHING_PROTOCOLS
from ipc.wire.http_connection import NothingSentError
from workers.proc.peers import peer_ids

MAX_HEAD_BYTES: Final = 16 * 1024
"""Largest head of an answer that is taken."""
MAX_KEPT: Final = 4
"""Connections that are kept while nothing is asked; each costs Podman's service a goroutine."""
STARTING_POLL_S: Final = 0.02
"""Between two tries to connect to a service that is being started, in seconds."""


class Connection(http_connection.Connection):
    """One connection: `head`, then `parts`, `body` or `take_over`."""

    def __init__(self, path: str) -> None:
        """Raises NothingSentError. Connecting to a Unix socket succeeds or fails at once (unix(7))."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            raise NothingSentError(str(error)) from None
        super().__init__(sock, MAX_HEAD_BYTES)

    @property
    def service_pid(self) -> int:
        """The process that has made the socket listen. Raises OSError."""
        pid, _ = peer_ids(self._sock)
        return pid

    def take_over(self) -> tuple[Duplex, bytes]:
        """The connection itself, which is no HTTP any more after this answer's head, and what was read beyond that.

        Raises OSError when the answer has an end of its own. Whoever takes it closes it.
        """
        if self._answer.status != SWITCHING_PROTOCOLS and (self._answer.is_whole or not self._answer.ends_with_close):
            raise ConnectionResetError("an answer where the streams should begin")
        rest = b"".join(self._answer.take())
        self._answer.forget()
        return Duplex(self._sock), rest


class PodmanSocket:
    """Makes connections with one service."""

    def __init__(self, path: str, starting_s: float = 0.0) -> None:
        """``starting_s``: how long the service may take, from the first connection on, until it listens."""
        self._path = path
        self._starting_s = starting_s
        """0 from then on, or when it has not."""

    async def connect(self) -> Connection:
        """A connection to a service that may have been started this moment: nobody has to find out by a failed call,
        whose repetitions get rarer, and after which everything is listed once more. Raises NothingSentError."""
        until = loop_time() + self._starting_s
        while True:
            try:
                connection = Connection(self._path)
            except NothingSentError:
                if not self._starting_s or loop_time() >= until:
                    self._starting_s = 0.0
                    raise
            else:
                self._starting_s = 0.0
                return connection
            await asyncio.sleep(STARTING_POLL_S)
