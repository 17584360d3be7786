"""Connections with the API server, over TLS or without.

No proxy of the environment is asked: the kubeconfig says where the server is. A peer that is gone is noticed by the
kernel: it asks a silent peer after 30 s, and gives up 15 s later, as HTTP/2's pings do in client-go.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

import msgspec

from ipc.eventloop.lookup import connected
from ipc.wire.http_connection import Connection, TlsConnection

MAX_HEAD_BYTES: Final = 64 * 1024
"""Largest head of an answer that is taken."""
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


async def connect(address: Address, context: ssl.SSLContext | None) -> Connection:
    """A connection with the server; without TLS where there is no context. Raises OSError (`ssl.SSLError` is one)."""
    made = await connected(address.host, address.port)
    for option in _SOCKET_OPTIONS:
        made.setsockopt(*option)
    if context is None:
        return Connection(made, MAX_HEAD_BYTES)
    connection = TlsConnection(made, MAX_HEAD_BYTES, context, address.tls_name or address.host)
    try:
        async with asyncio.timeout(HANDSHAKE_DEADLINE_S):
            await connection.shake_hands()
    except BaseException as error:
        connection.close()
        if isinstance(error, ssl.CertificateError):
            raise UntrustedServerError(f"tls: failed to verify certificate: {error.verify_message}") from None
        if isinstance(error, TimeoutError):
            raise ConnectionAbortedError(f"no TLS within {HANDSHAKE_DEADLINE_S:g} s") from None
        raise
    return connection
