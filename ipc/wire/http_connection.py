"""HTTP/1.1 on one connection, on the event loop: a client's end of a socket that its caller has made. httptools parses.

Bytes are read when somebody waits for them and not before: the kernel's buffer is the only one between the server and a
reader, so a stream that is not read waits in the server. A caller that is cancelled or late closes the connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

from ipc.eventloop.loop_clock import loop_time
from ipc.wire.http_answer import HttpAnswer

READ_BYTES: Final = 64 * 1024
"""Most that is read at a time."""
_CLOSED_HERE: Final = "the connection was closed here"


class NothingSentError(ConnectionError):
    """The server has not got a byte of the request: it may be sent again, whatever it is."""


class Connection:
    """One connection: one exchange at a time, each begun by `send`. Raises OSError when it breaks off.

    `head`, then `parts` or `body`. After anything but a whole body it can only be closed.
    """

    def __init__(self, sock: socket.socket, max_head_bytes: int) -> None:
        """``sock`` is connected, does not block, and is closed with this. An answer with a larger head is none."""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._answer = HttpAnswer(max_head_bytes)
        self._is_waiting = self._is_over = False
        self.used_at = 0.0
        """When its last exchange has begun, in seconds of the loop's clock."""

    @property
    def is_open(self) -> bool:
        """Whether nothing has come since the last answer, not even the end that a server which has gone leaves."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def is_reusable(self) -> bool:
        """Whether the answer has come whole, and the server takes another request."""
        answer = self._answer
        can_go_on = answer.is_whole and answer.keep_alive and not answer.has_surplus and answer.broken is None
        return can_go_on and not self._is_over

    @property
    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        """Headers of the answer, as they have come (`ipc.wire.http_answer.decoded_headers`)."""
        return self._answer.fields

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer, names in small letters."""
        return self._answer.headers

    @property
    def received_bytes(self) -> int:
        """Bytes that have come since the last request."""
        return self._answer.received_bytes

    async def send(self, request: bytes) -> None:
        """A whole request. Raises NothingSentError when no byte of it could be sent (a closed peer: EPIPE)."""
        self._begin()
        try:
            sent = self._sock.send(request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise NothingSentError(str(error)) from None
        if sent < len(request):
            await self.write(request[sent:])

    async def write(self, data: bytes) -> None:
        """More of a request whose body was not sent whole. Raises OSError."""
        self._is_waiting = True
        try:
            await self._loop.sock_sendall(self._sock, data)
        finally:
            self._is_waiting = False

    async def head(self) -> int:
        """Status of the final answer: what announces it (100, 103) is passed over."""
        while not self._answer.status:
            await self._more()
        return self._answer.status

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body, as it comes."""
        while True:
            for part in self._answer.take():
                yield part
            if self._answer.is_whole:
                return
            await self._more()

    async def body(self, max_bytes: int) -> bytes:
        """The whole body. Raises TooLargeError, before much more than that was read."""
        while (body := self._answer.take_whole(max_bytes)) is None:
            await self._more()
        return body

    def abandon(self) -> None:
        """Close it, or have whoever waits for it find it broken, who closes it then."""
        self._is_over = True
        if not self._is_waiting:
            self.close()
            return
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was quicker

    def close(self) -> None:
        """Nobody may be waiting for it any more."""
        self._is_over = True
        self._answer.forget()
        self._sock.close()

    def _begin(self) -> None:
        self._answer.begin()
        self.used_at = loop_time()

    async def _more(self) -> None:
        if self._answer.broken is not None:
            raise self._answer.broken
        data = b"" if self._is_over else await self._received()
        if data:
            self._answer.feed(data)
        elif self._is_over:
            raise ConnectionResetError(_CLOSED_HERE)
        else:
            self._answer.end()

    async def _received(self) -> bytes:
        """Bytes that are there, once there are any; empty at the end."""
        self._is_waiting = True
        try:
            return await self._loop.sock_recv(self._sock, READ_BYTES)
        finally:
            self._is_waiting = False


class TlsConnection(Connection):
    """The same over TLS, after `shake_hands`."""

    def __init__(self, sock: socket.socket, max_head_bytes: int, context: ssl.SSLContext, server_name: str) -> None:
        """As above. ``server_name`` is what the server's certificate must have."""
        super().__init__(sock, max_head_bytes)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    @property
    def is_open(self) -> bool:
        """As above: nothing that was received waits to be deciphered, either."""
        return not self._incoming.pending and not self._tls.pending() and super().is_open

    async def shake_hands(self) -> None:
        """Raises OSError: `ssl.SSLError` is one."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    raise ConnectionResetError("the server has ended the TLS handshake") from None
            else:
                return await self._flush()

    async def send(self, request: bytes) -> None:
        """A whole request. Raises OSError."""
        self._begin()
        await self.write(request)

    async def write(self, data: bytes) -> None:
        """More of a request whose body was not sent whole. Raises OSError."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        await self._flush()

    async def _received(self) -> bytes:
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def _fill(self) -> bool:
        """Take what has come; False at the end."""
        data = await super()._received()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await super().write(self._outgoing.read())
