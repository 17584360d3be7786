"""An HTTP probe: does a GET get a good status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from ipc.api import HTTPGetAction
from workers.endpoints import connect, dial_text, endpoint_of
from workers.go_text import head, quoted
from workers.http_request import HttpRequest, RedirectError, redirected, request_of
from workers.pod_network import Dialer
from workers.probes.outcome import MAX_OUTPUT_BYTES, Answer, ProbeError, ProbeOutcome, ProbeTarget
from workers.probes.user_agent import PROBE_USER_AGENT

MAX_REQUESTS: Final = 10
"""The redirect that follows the tenth request is one too many (net/http/client.go, defaultCheckRedirect)."""
MAX_HEADER_BYTES: Final = 64 * 1024
"""Longest line that is taken in the head of an answer, in bytes. Go takes 10 MB in all."""
TLS_HANDSHAKE_TIMEOUT_S: Final = 10.0
"""Upstream's (apimachinery, pkg/util/net/http.go, SetTransportDefaults), if timeoutSeconds is longer than that."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SUCCESS: Final = range(200, 400)
_REDIRECT: Final = range(300, 400)
_LATE_HEAD: Final = "(Client.Timeout exceeded while awaiting headers)"
_LATE_BODY: Final = "(Client.Timeout or context cancellation while reading body)"
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)
_NO_HEADERS: Final = ("User-Agent", "Accept", "Accept-Encoding")
"""Of which aiohttp would send its own."""
_TLS_TEXTS: Final[Mapping[str, str]] = {
    "wrong version number": "http: server gave HTTP response to HTTPS client",
    "record layer failure": "tls: first record does not look like a TLS handshake",
}


class _RequestFailed(Exception):
    """No answer; the message is Go's."""


async def probe_http(action: HTTPGetAction, target: ProbeTarget, timeout_s: int, dialer: Dialer) -> ProbeOutcome:
    """Mirrors DoHTTPProbe (pkg/probe/http/http.go). Raises PortError, DialError, ProbeError.

    As there, an answer that breaks off in its body is an error of the probe and says nothing about the container.
    HTTP/2 is not offered over TLS, where Go's client does.
    """
    endpoint = endpoint_of(target.network, action.host, action.port, target.container)
    deadline = asyncio.get_running_loop().time() + timeout_s
    request = request_of(action, endpoint, PROBE_USER_AGENT)
    for _ in range(MAX_REQUESTS):
        try:
            async with _answer(request, dialer, deadline) as answer:
                following = _following(request, answer)
                if following is None:
                    return await _outcome(answer, deadline)
        except (_RequestFailed, RedirectError) as failed:
            return _failure(request, str(failed))
        request = following
    return _failure(request, f"stopped after {MAX_REQUESTS} redirects")


def _failure(request: HttpRequest, text: str) -> ProbeOutcome:
    return ProbeOutcome(Answer.FAILURE, f"Get {quoted(request.url)}: {text}")


def _following(request: HttpRequest, answer: aiohttp.ClientResponse) -> HttpRequest | None:
    """What the answer redirects to, if that is the same host; raises RedirectError."""
    location = answer.headers.get("Location", "")
    if answer.status not in _REDIRECTS or not location:
        return None
    return redirected(request, location)


async def _outcome(answer: aiohttp.ClientResponse, deadline: float) -> ProbeOutcome:
    """Raises ProbeError."""
    body = head(await _body(answer, deadline))
    if answer.status not in _SUCCESS:
        # Never with the body, which may hold secrets: whoever sees events sees it.
        return ProbeOutcome(Answer.FAILURE, f"HTTP probe failed with statuscode: {answer.status}")
    if answer.status in _REDIRECT:
        return ProbeOutcome(Answer.WARNING, f"Probe terminated redirects, Response body: {body}")
    return ProbeOutcome(Answer.SUCCESS, body)


async def _body(answer: aiohttp.ClientResponse, deadline: float) -> bytes:
    """As much as is kept of it; the rest is not read. Raises ProbeError."""
    kept = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            while len(kept) < MAX_OUTPUT_BYTES and (part := await answer.content.read(MAX_OUTPUT_BYTES - len(kept))):
                kept += part
    except TimeoutError:
        raise ProbeError(f"context deadline exceeded {_LATE_BODY}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ProbeError(_broken_text(error)) from error
    return bytes(kept)


@contextlib.asynccontextmanager
async def _answer(request: HttpRequest, dialer: Dialer, deadline: float) -> AsyncIterator[aiohttp.ClientResponse]:
    """Its head is there, its body is not. At the end nothing of the connection is left.

    Raises _RequestFailed, DialError.
    """
    connector = _Connector(request, await _connected(request, dialer, deadline))
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(connector.abort)
        session = await stack.enter_async_context(_session(connector))
        yield await _head(session, request, deadline)


async def _connected(request: HttpRequest, dialer: Dialer, deadline: float) -> socket.socket:
    try:
        return await connect(dialer, request.endpoint, deadline)
    except TimeoutError as error:
        raise _RequestFailed(f"{dial_text(request.endpoint, error)} {_LATE_HEAD}") from error
    except OSError as error:
        raise _RequestFailed(dial_text(request.endpoint, error)) from error


class _Connector(aiohttp.BaseConnector):
    """Has one connection, which was made before."""

    def __init__(self, request: HttpRequest, connected: socket.socket) -> None:
        super().__init__(force_close=True)
        self._request = request
        self._connected = connected
        self._transport: asyncio.Transport | None = None

    async def _create_connection(self, *_: object) -> ResponseHandler:
        """Raises _RequestFailed."""
        try:
            self._transport, protocol = await self._loop.create_connection(
                self._factory, sock=self._connected, **_tls_options(self._request)
            )
        except OSError as error:
            raise _RequestFailed(_tls_text(error)) from error
        return protocol

    def abort(self) -> None:
        """Close the connection, without a farewell of TLS that somebody would have to answer."""
        if self._transport is not None:
            self._transport.abort()
        self._connected.close()


def _session(connector: _Connector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        timeout=_NO_TIMEOUT,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=_NO_HEADERS,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
    )


async def _head(session: aiohttp.ClientSession, request: HttpRequest, deadline: float) -> aiohttp.ClientResponse:
    headers = CIMultiDict((("Host", request.host), *request.headers))
    try:
        async with asyncio.timeout_at(deadline):
            return await session.get(URL(request.url, encoded=True), headers=headers, allow_redirects=False)
    except TimeoutError as error:
        raise _RequestFailed(f"context deadline exceeded {_LATE_HEAD}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _RequestFailed(_broken_text(error)) from error


def _tls_options(request: HttpRequest) -> dict[str, Any]:
    """A context for each connection costs 0.15 ms, a tenth of a handshake."""
    if not request.tls:
        return {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # The name goes into SNI; Python leaves it out for an address, as Go does.
    return {
        "ssl": context,
        "server_hostname": request.endpoint.host,
        "ssl_handshake_timeout": TLS_HANDSHAKE_TIMEOUT_S,
    }


def _tls_text(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "handshake failure").replace("_", " ").lower()
        return _TLS_TEXTS.get(reason, f"tls: {reason}")
    if isinstance(error, ConnectionAbortedError):
        return "net/http: TLS handshake timeout"
    return _broken_text(error)


def _broken_text(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, aiohttp.ClientResponseError):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    if isinstance(error, OSError) and error.errno:
        return f"read: {os.strerror(error.errno).lower()}"
    return str(error) or type(error).__name__
