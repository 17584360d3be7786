"""HTTP/1.1 with Podman on one connection of its Unix socket, on the event loop. httptools parses.

Bytes are read when somebody waits for them and not before: the kernel's buffer is the only one between Podman and a
reader, so a stream that is not read waits in Podman. A caller that is cancelled or late closes the connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from ipc.link.wire.duplex import Duplex
from ipc.link.wire.http_answer import SWITCHING_PROTOCOLS, HttpAnswer
from workers.proc.peers import peer_ids

MAX_HEAD_BYTES: Final = 16 * 1024
"""Largest head of an answer that is taken."""
READ_BYTES: Final = 64 * 1024
"""Most that is read at a time."""


class NothingSentError(ConnectionError):
    """The service has not got a byte of the request: it may be sent again, whatever it is."""


class Connection:
    """One connection: one exchange at a time, each begun by `send`. Raises OSError when it breaks off.

    `head`, then `parts`, `body` or `take_over`. After anything but a whole body it can only be closed.
    """

    def __init__(self, path: str) -> None:
        """Raises NothingSentError. Connecting to a Unix socket succeeds or fails at once (unix(7))."""
        self._loop = asyncio.get_running_loop()
        self._answer = HttpAnswer(MAX_HEAD_BYTES)
        self._is_read = False
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._sock.connect(path)
        except OSError as error:
            self._sock.close()
            raise NothingSentError(str(error)) from None

    @property
    def is_open(self) -> bool:
        """Whether nothing has come since the last answer, not even the end that a service which has gone leaves."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def service_pid(self) -> int:
        """The process that has made the socket listen. Raises OSError."""
        pid, _ = peer_ids(self._sock)
        return pid

    @property
    def is_reusable(self) -> bool:
        """Whether the answer has come whole, and the service takes another request."""
        answer = self._answer
        return answer.is_whole and answer.keep_alive and not answer.has_surplus and answer.broken is None

    async def send(self, request: bytes) -> None:
        """A whole request. Raises NothingSentError when no byte of it could be sent (a closed peer: EPIPE)."""
        self._answer.begin()
        try:
            sent = self._sock.send(request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise NothingSentError(str(error)) from None
        if sent < len(request):
            await self._loop.sock_sendall(self._sock, request[sent:])

    async def write(self, data: bytes) -> None:
        """More of a request whose body was not sent whole. Raises OSError."""
        await self._loop.sock_sendall(self._sock, data)

    async def head(self) -> int:
        """Status of the final answer: what announces it (100, 103) is passed over."""
        while not self._answer.status:
            await self._read()
        return self._answer.status

    @property
    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        """Headers of the answer, as they have come (`ipc.link.wire.http_answer.decoded_headers`)."""
        return self._answer.fields

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer, names in small letters."""
        return self._answer.headers

    async def parts(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        while True:
            for part in self._answer.take():
                yield part
            if self._answer.is_whole:
                return
            await self._read()

    async def body(self, max_bytes: int) -> bytes:
        """The whole body. Raises TooLargeError, before much more than that was read."""
        while (body := self._answer.take_whole(max_bytes)) is None:
            await self._read()
        return body

    def take_over(self) -> tuple[Duplex, bytes]:
        """The connection itself, which is no HTTP any more after this answer's head, and what was read beyond that.

        Raises OSError when the answer has an end of its own. Whoever takes it closes it.
        """
        if self._answer.status != SWITCHING_PROTOCOLS and (self._answer.is_whole or not self._answer.ends_with_close):
            raise ConnectionResetError("an answer where the streams should begin")
        rest = b"".join(self._answer.take())
        self._answer.forget()
        return Duplex(self._sock), rest

    def break_off(self) -> None:
        """End the exchange under way: whoever waits for it finds the connection broken."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was quicker

    def abandon(self) -> None:
        """Close it, or have whoever waits for it find it broken, who closes it then."""
        if self._is_read:
            self.break_off()
        else:
            self.close()

    def close(self) -> None:
        """Nobody may be waiting for it any more."""
        self._answer.forget()
        self._sock.close()

    async def _read(self) -> None:
        if self._answer.broken is not None:
            raise self._answer.broken
        self._is_read = True
        try:
            data = await self._loop.sock_recv(self._sock, READ_BYTES)
        finally:
            self._is_read = False
        if data:
            self._answer.feed(data)
        else:
            self._answer.end()
