"""HTTP/1.1 with the API server on one connection, over TLS or without. httptools parses.

No proxy of the environment is asked: the kubeconfig says where the server is. A peer that is gone is noticed by the
kernel: it asks a silent peer after 30 s, and gives up 15 s later, as HTTP/2's pings do in client-go.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Final, cast

import msgspec

from ipc.link.eventloop.lookup import connected
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.wire.http_answer import HttpAnswer

MAX_HEAD_BYTES: Final = 64 * 1024
"""Largest head of an answer that is taken."""
MAX_AHEAD_BYTES: Final = 256 * 1024
"""So much of a body is kept before anybody takes it; then the server waits."""
HANDSHAKE_DEADLINE_S: Final = 10.0
"""How long TLS may take (client-go transport/cache.go)."""
KEEP_ALIVE_IDLE_S: Final = 30
KEEP_ALIVE_PERIOD_S: Final = 5
KEEP_ALIVE_PROBES: Final = 3
UNANSWERED_MS: Final = 45_000
"""A peer that has not acknowledged what was sent for so long is gone (tcp(7), TCP_USER_TIMEOUT)."""

_SOCKET_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_ALIVE_PERIOD_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEP_ALIVE_PROBES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS),
)


class UntrustedServerError(OSError):
    """The server's certificate is not of the cluster, or not for that name."""


class Address(msgspec.Struct, frozen=True):
    """Where the server listens, and the name that its certificate must have."""

    host: str
    port: int
    tls_name: str = ""
    """Empty: the host."""


class Connection(asyncio.Protocol):
    """One connection: one exchange at a time, each begun by `send`. Raises OSError when it breaks off.

    `head`, then `parts` or `body`. After anything but a whole body it can only be closed.
    """

    def __init__(self) -> None:
        self._answer = HttpAnswer(MAX_HEAD_BYTES)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._lost: OSError | None = None
        self._ahead = 0
        self.used_at = loop_time()
        """When its last exchange has begun, in seconds of the loop's clock."""

    @property
    def is_open(self) -> bool:
        """Whether nothing has come since the last answer, not even an end."""
        return self._lost is None and not self._answer.has_surplus and self._answer.broken is None

    @property
    def is_reusable(self) -> bool:
        """Whether the answer has come whole, and the server takes another request."""
        return self.is_open and self._answer.is_whole and self._answer.keep_alive

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer, names in small letters."""
        return self._answer.headers

    @property
    def received_bytes(self) -> int:
        """Bytes that have come since the last request."""
        return self._answer.received_bytes

    def send(self, request: bytes) -> None:
        """Begin an exchange with a whole request. Raises OSError when the connection has ended before."""
        if self._lost is not None or self._transport is None:
            raise self._lost or ConnectionResetError("the connection is closed")
        self._answer.begin()
        self._ahead = 0
        self.used_at = loop_time()
        self._transport.write(request)

    async def head(self) -> int:
        """Status of the answer."""
        while not self._answer.status:
            await self._more()
        return self._answer.status

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body, as it comes."""
        while True:
            taken = self._answer.take()
            self._let_more_come()
            for part in taken:
                yield part
            if self._answer.is_whole:
                return
            if not taken:
                await self._more()

    async def body(self, max_bytes: int) -> bytes:
        """The whole body. Raises TooLargeError, before much more than that was read."""
        while (body := self._answer.take_whole(max_bytes)) is None:
            self._let_more_come()
            await self._more()
        return body

    def close(self) -> None:
        """End the connection; whoever waits for it finds it broken."""
        if self._transport is not None:
            self._transport.abort()
        self._end(ConnectionAbortedError("the connection was closed here"))

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; the peer's silence is watched from here on."""
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            for option in _SOCKET_OPTIONS:
                sock.setsockopt(*option)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and have the server wait when nobody takes it."""
        self._ahead += len(data)
        self._answer.feed(data)
        if self._ahead > MAX_AHEAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, with the error that the loop knows."""
        self._end(exc if isinstance(exc, OSError) else ConnectionResetError("the server has closed the connection"))

    # --------------------------------------------------------------------------------------------------------------

    async def _more(self) -> None:
        """Wait until something has come. Raises OSError when nothing will, and this is no end of the answer."""
        if self._answer.broken is not None:
            raise self._answer.broken
        if self._lost is not None:
            if isinstance(self._lost, ConnectionResetError):
                self._answer.end()
                return
            raise self._lost
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _let_more_come(self) -> None:
        if self._ahead > MAX_AHEAD_BYTES and self._transport is not None and self._lost is None:
            self._transport.resume_reading()
        self._ahead = 0

    def _end(self, error: OSError) -> None:
        if self._lost is None:
            self._lost = error
        self._transport = None
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def connect(address: Address, context: ssl.SSLContext | None) -> Connection:
    """A connection with the server; without TLS where there is no context. Raises OSError (`ssl.SSLError` is one)."""
    loop = asyncio.get_running_loop()
    made = await connected(address.host, address.port)
    if context is None:
        _, plain = await loop.create_connection(Connection, sock=made)
        return plain
    try:
        _, connection = await loop.create_connection(
            Connection,
            sock=made,
            ssl=context,
            server_hostname=address.tls_name or address.host,
            ssl_handshake_timeout=HANDSHAKE_DEADLINE_S,
        )
    except ssl.CertificateError as error:
        raise UntrustedServerError(f"tls: failed to verify certificate: {error.verify_message}") from None
    return connection
