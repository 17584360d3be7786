"""One GET to a pod and its answer, by HTTP/1.1 on a connection of its own.

h11 speaks the protocol. aiohttp's client does not do: it sends a GET a second time when the server closes the first
connection, and waits for the rest of a chunk that is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

import h11

from ipc.host.text.gofmt import head, quoted
from workers.podhttp.endpoints import connect, dial_text
from workers.podhttp.pod_network import Dialer
from workers.podhttp.request import HttpRequest, redirected

MAX_HEAD_BYTES: Final = 64 * 1024
"""Longest head of an answer that is taken, in bytes. Go takes 10 MB."""
MAX_REQUESTS: Final = 10
"""The redirect that follows the tenth request is one too many (net/http/client.go, defaultCheckRedirect)."""
TOO_MANY_REDIRECTS: Final = f"stopped after {MAX_REQUESTS} redirects"
TLS_HANDSHAKE_TIMEOUT_S: Final = 10.0
"""Upstream's (apimachinery, pkg/util/net/http.go, SetTransportDefaults), if there is that much time."""
_READ_BYTES: Final = 16 * 1024
"""Most bytes that are read at a time, and half of those that may wait to be read."""
_SHOWN_BYTES: Final = 4096
"""Bytes that a message shows of an answer that is no HTTP."""
_SWITCHING_PROTOCOLS: Final = 101
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_LATE_HEAD: Final = "(Client.Timeout exceeded while awaiting headers)"
_LATE_BODY: Final = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
_HTTP_ON_TLS: Final = "wrong version number"
_TLS_TEXTS: Final[Mapping[str, str]] = {
    "record layer failure": "tls: first record does not look like a TLS handshake",
}

_Response = h11.Response | h11.InformationalResponse


class ExchangeFailed(Exception):
    """There is no answer; the message is what Go's client would say."""


class NoTls(ExchangeFailed):
    """The server has answered in plain HTTP."""


class NoHttp(ExchangeFailed):
    """The answer is no HTTP; the message has its beginning."""


class BodyBroken(Exception):
    """The answer has begun and does not come to its end."""


class Answer:
    """An answer whose head is there."""

    def __init__(self, conversation: _Conversation, response: _Response) -> None:
        self.status = response.status_code
        self._headers = response.headers
        self._conversation = conversation

    def header(self, name: str) -> str:
        """The first of that name (in small letters); empty when there is none."""
        found = next((value for key, value in self._headers if key == name.encode()), b"")
        return found.decode("utf-8", "surrogateescape")

    async def body(self, most_bytes: int) -> bytes:
        """Beginning of the body; no more than that is waited for. Raises BodyBroken."""
        kept = bytearray()
        if self.status == _SWITCHING_PROTOCOLS:
            return b""
        try:
            while len(kept) < most_bytes and isinstance(event := await self._conversation.next_event(), h11.Data):
                kept += event.data
        except h11.RemoteProtocolError as error:
            raise BodyBroken("unexpected EOF" if self._conversation.at_end else f"malformed body: {error}") from error
        except OSError as error:
            raise BodyBroken(_read_text(error)) from error
        return bytes(kept[:most_bytes])


@contextlib.asynccontextmanager
async def exchange(request: HttpRequest, dialer: Dialer, deadline: float) -> AsyncIterator[Answer]:
    """Ask, and give the answer when its head is there. ``deadline`` is in the loop's time, for all of it.

    The server's certificate is not looked at, as upstream. At the end nothing of the connection is left. Raises
    ExchangeFailed, DialError, and BodyBroken when the time is over while the answer is looked at.
    """
    late: ExchangeFailed | BodyBroken = ExchangeFailed(f"context deadline exceeded {_LATE_HEAD}")
    with await _connected(request, dialer, deadline) as connected, contextlib.ExitStack() as stack:
        try:
            async with asyncio.timeout_at(deadline):
                conversation = _Conversation(await _wire(connected, request, stack))
                response = await _ask(conversation, request)
                late = BodyBroken(_LATE_BODY)
                yield Answer(conversation, response)
        except TimeoutError as error:
            raise late from error
        except OSError as error:
            raise ExchangeFailed(_read_text(error)) from error


async def _wire(connected: socket.socket, request: HttpRequest, stack: contextlib.ExitStack) -> _Wire:
    """Raises ExchangeFailed, OSError."""
    if not request.tls:
        return _PlainWire(connected)
    wire = await _tls(connected, request)
    stack.callback(wire.abort)
    return wire


def following(request: HttpRequest, answer: Answer) -> HttpRequest | None:
    """Request that the answer redirects to, if that is the same host; raises RedirectError."""
    location = answer.header("location")
    if answer.status not in _REDIRECTS or not location:
        return None
    return redirected(request, location)


async def _connected(request: HttpRequest, dialer: Dialer, deadline: float) -> socket.socket:
    try:
        return await connect(dialer, request.endpoint, deadline)
    except TimeoutError as error:
        raise ExchangeFailed(f"{dial_text(request.endpoint, error)} {_LATE_HEAD}") from error
    except OSError as error:
        raise ExchangeFailed(dial_text(request.endpoint, error)) from error


def _tls_context() -> ssl.SSLContext:
    """One for each connection: it costs 0.15 ms, a tenth of a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _tls(connected: socket.socket, request: HttpRequest) -> _TlsWire:
    """Raises ExchangeFailed, OSError."""
    try:
        streams = await asyncio.open_connection(
            sock=connected,
            limit=_READ_BYTES,
            ssl=_tls_context(),
            # The name goes into SNI; Python leaves it out for an address, as Go does.
            server_hostname=request.endpoint.host,
            ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S,
        )
    except ssl.SSLError as error:
        reason = (error.reason or "handshake failure").replace("_", " ").lower()
        if reason == _HTTP_ON_TLS:
            raise NoTls("http: server gave HTTP response to HTTPS client") from error
        raise ExchangeFailed(_TLS_TEXTS.get(reason, f"tls: {reason}")) from error
    except ConnectionAbortedError as error:
        raise ExchangeFailed("net/http: TLS handshake timeout") from error
    return _TlsWire(*streams)


async def _ask(conversation: _Conversation, request: HttpRequest) -> _Response:
    """The final answer's head. Raises ExchangeFailed, OSError."""
    try:
        await conversation.send(request)
        while True:
            event = await conversation.next_event()
            if isinstance(event, _Response) and not _is_provisional(event):
                return event
    except h11.LocalProtocolError as error:
        raise ExchangeFailed(f"net/http: invalid request: {error}") from error
    except h11.RemoteProtocolError as error:
        raise NoHttp(_head_text(conversation)) from error


def _head_text(conversation: _Conversation) -> str:
    """Why there is no head."""
    if conversation.at_end:
        return "unexpected EOF" if conversation.beginning else "EOF"
    first_line = head(conversation.beginning.partition(b"\n")[0].strip())
    return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {quoted(first_line)}"


def _is_provisional(response: _Response) -> bool:
    return isinstance(response, h11.InformationalResponse) and response.status_code != _SWITCHING_PROTOCOLS


class _Wire(Protocol):
    """Bytes to the server and back."""

    async def send(self, data: bytes) -> None:
        """Raises OSError."""

    async def receive(self) -> bytes:
        """Bytes that are there, once there are any; empty at the end. Raises OSError."""


class _PlainWire:
    """Socket calls: a third cheaper than asyncio's streams."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        return await self._loop.sock_recv(self._socket, _READ_BYTES)


class _TlsWire:
    """asyncio's streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> bytes:
        return await self._reader.read(_READ_BYTES)

    def abort(self) -> None:
        """Close the connection without a farewell of TLS: nobody waits for the server's."""
        self._writer.transport.abort()


class _Conversation:
    """One request and one answer on one connection."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self.beginning = b""
        """The first bytes that came."""
        self.at_end = False
        """The server has closed it."""

    async def send(self, request: HttpRequest) -> None:
        """Raises LocalProtocolError when that is no HTTP, OSError."""
        headers = [("Host", request.host), *request.headers, ("Connection", "close")]
        asked = h11.Request(
            method="GET",
            target=request.target,
            headers=[(name.encode(), value.strip().encode("utf-8", "surrogateescape")) for name, value in headers],
        )
        await self._wire.send(self._h11.send(asked) or b"")
        self._h11.send(h11.EndOfMessage())

    async def next_event(self) -> object:
        """One of h11's. Raises RemoteProtocolError, OSError."""
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            received = await self._wire.receive()
            self.beginning = self.beginning or received[:_SHOWN_BYTES]
            self.at_end = not received
            self._h11.receive_data(received)
        return event


def _read_text(error: OSError) -> str:
    return f"read: {os.strerror(error.errno).lower()}" if error.errno else "EOF"
