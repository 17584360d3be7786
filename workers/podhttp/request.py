"""Request of an httpGet handler, and the next one when it is redirected."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.probe import HTTPGetAction, HTTPHeader
from ipc.k8s.network.ports import join_host_port
from workers.podhttp.endpoints import Endpoint
from workers.podhttp.urls import ascii_url

HTTP: Final = "http"
HTTPS: Final = "https"
DEFAULT_PORTS: Final[Mapping[str, int]] = {HTTP: 80, HTTPS: 443}

_NO_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SAFE: Final = "/$&+,:;=@!'()*[]~"
_NOT_SENT: Final = frozenset({"host", "content-length", "transfer-encoding", "trailer"})
"""Headers that Go's client decides itself (net/http/request.go, reqWriteExcludeHeader)."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One GET."""

    endpoint: Endpoint
    tls: bool = False
    target: str
    """Path and query, escaped."""
    host: str
    """The Host header."""
    headers: tuple[tuple[str, str], ...] = ()
    """The others, in order; a name may be there more than once."""

    @property
    def url(self) -> str:
        return f"{HTTPS if self.tls else HTTP}://{self.endpoint.address}{self.target}"


class RedirectError(Exception):
    """The redirect cannot be followed."""


def request_of(action: HTTPGetAction, endpoint: Endpoint, user_agent: str) -> HttpRequest:
    """Mirrors NewRequestForHTTPGetAction (pkg/probe/http/request.go)."""
    return HttpRequest(
        endpoint=endpoint,
        tls=action.scheme == "HTTPS",
        target=_request_target(action.path),
        host=_first(action.http_headers, "host") or endpoint.address,
        headers=_headers(action.http_headers, user_agent),
    )


def redirected(request: HttpRequest, location: str) -> HttpRequest | None:
    """The request that follows; None when it would go to another host (pkg/probe/http/http.go, RedirectChecker).

    Mirrors Client.do of Go's net/http for GET. Raises RedirectError.
    """
    location, host = ascii_url(location), request.endpoint.host.lower()
    try:
        url = urldefrag(urljoin(ascii_url(request.url), location)).url
        parts = urlsplit(url)
        port, is_absolute = parts.port, bool(urlsplit(location).scheme)
    except ValueError as error:
        raise RedirectError(f"failed to parse Location header {quoted(location)}: {error}") from error
    if (parts.hostname or "").lower() != ascii_url(host).lower():
        return None
    if parts.scheme not in DEFAULT_PORTS:
        raise RedirectError(f'unsupported protocol scheme "{parts.scheme}"')
    endpoint = msgspec.structs.replace(request.endpoint, port=port or DEFAULT_PORTS[parts.scheme])
    return msgspec.structs.replace(
        request,
        endpoint=endpoint,
        tls=parts.scheme == HTTPS,
        target=_request_target(parts.path + (f"?{parts.query}" if parts.query else "")),
        host=_netloc(host, port) if is_absolute else request.host,
    )


def _netloc(host: str, port: int | None) -> str:
    if port is not None:
        return join_host_port(host, port)
    return f"[{host}]" if ":" in host else host


def _request_target(path: str) -> str:
    """As url.Parse and URL.RequestURI make it; what is no URL is taken for a path (request.go, formatURL)."""
    try:
        parts = urlsplit(ascii_url(path))
    except ValueError:
        return _escaped(path)
    if _NO_ESCAPE.search(parts.path) or _CONTROL.search(path):
        return _escaped(path)
    query = f"?{quote(parts.query, string.punctuation, errors=_BYTES)}" if parts.query else ""
    return _rooted(quote(parts.path, f"%{_PATH_SAFE}", errors=_BYTES)) + query


_BYTES: Final = "surrogateescape"
"""How bytes that are no UTF-8 come out of a header, and go back."""


def _escaped(path: str) -> str:
    return _rooted(quote(path, _PATH_SAFE, errors=_BYTES))


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _headers(given: tuple[HTTPHeader, ...], user_agent: str) -> tuple[tuple[str, str], ...]:
    """Mirrors newProbeRequest: an empty Accept means none, and so does an empty User-Agent to Go's client."""
    defaults = (("User-Agent", user_agent), ("Accept", "*/*"))
    chosen = [(name, value) for name, value in defaults if _first(given, name.lower()) is None]
    for header in given:
        name = header.name.lower()
        if name in _NOT_SENT or (name in _OPTIONAL and not _first(given, name)):
            continue
        chosen.append((header.name, header.value))
    return tuple(chosen)


_OPTIONAL: Final = frozenset({"accept", "user-agent"})


def _first(headers: tuple[HTTPHeader, ...], name: str) -> str | None:
    return next((header.value for header in headers if header.name.lower() == name), None)
