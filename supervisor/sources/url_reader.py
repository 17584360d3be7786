"""Reads the source ``http`` from a URL (pkg/kubelet/config/http.go). Imported where one is configured.

A GET is bounded in time and size, is made on the loop, and follows redirects.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Final

import h11

from ipc.link.eventloop.lookup import connected
from supervisor.config.shown_settings import shown_url
from supervisor.protocol.manifests import SourceSnapshot
from supervisor.sources.http_source import HttpSource, failed

FETCH_TIMEOUT_S: Final = 10.0
"""pkg/kubelet/config/http.go, NewSourceURL."""
MAX_REDIRECTS: Final = 10
"""As many as Go's client follows."""
READ_BYTES: Final = 64 * 1024
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

Headers = Mapping[str, Sequence[str]]


class FetchError(Exception):
    """Nothing was got; the text says why, in words for people and without credentials."""


class UrlReader:
    """Fetches the set of a URL; tells what is new."""

    def __init__(self, source: HttpSource, url: str, headers: Headers, max_bytes: int) -> None:
        self._source = source
        self._url = url
        self._headers = headers
        self._max_bytes = max_bytes
        self._last: bytes | None = None
        self.name = shown_url(url)

    async def read(self) -> bytes | SourceSnapshot | None:
        """A body to decode, which was not the same the last time; a snapshot that says why there is none; None without
        news."""
        try:
            body = await fetch(self._url, self._headers, self._max_bytes, FETCH_TIMEOUT_S)
        except FetchError as error:
            return failed(self.name, str(error))
        if body == self._last:
            return None
        self._last = body
        return body

    def snapshot(self, body: bytes) -> SourceSnapshot:
        """The set of a body. An empty body states nothing: on purpose different, upstream takes it for an empty set,
        and an error (extractFromURL). A server without its content says the same as one whose pods are to end."""
        if body:
            return self._source.snapshot(self.name, body)
        return failed(self.name, "zero-length data; an empty PodList states that there are no pods")


async def fetch(url: str, headers: Headers, max_bytes: int, timeout_s: float) -> bytes:
    """The body of a 200. No proxy is used. Raises FetchError."""
    try:
        async with asyncio.timeout(timeout_s):
            for _ in range(MAX_REDIRECTS + 1):
                answer = await _get(url, headers, max_bytes)
                if isinstance(answer, bytes):
                    return answer
                target = urllib.parse.urljoin(url, answer)
                if urllib.parse.urlsplit(target).netloc != urllib.parse.urlsplit(url).netloc:
                    headers = {}  # meant for the first host, credentials as a rule
                url = target
    except TimeoutError:
        raise FetchError(f"no answer within {timeout_s:g} s") from None
    except (OSError, h11.ProtocolError, ValueError) as error:
        raise FetchError(str(error) or type(error).__name__) from None
    raise FetchError(f"stopped after {MAX_REDIRECTS} redirects")


async def _get(url: str, headers: Headers, max_bytes: int) -> bytes | str:
    """The body, or where to ask instead."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise FetchError("is no http or https URL")
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    made = await connected(parts.hostname, port)
    reader, writer = await asyncio.open_connection(
        sock=made, ssl=tls, server_hostname=parts.hostname if tls is not None else None
    )
    try:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        writer.write(
            connection.send(h11.Request(method="GET", target=target, headers=_request_headers(parts, headers))) or b""
        )
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        return await _answer(connection, reader, max_bytes)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            writer.transport.abort()


def _request_headers(parts: urllib.parse.SplitResult, headers: Headers) -> list[tuple[str, str]]:
    stated = [(name, value) for name, values in headers.items() for value in values]
    names = {name.lower() for name, _ in stated}
    own = {"Host": parts.netloc.rpartition("@")[2], "Connection": "close", "Accept-Encoding": "identity"}
    return [*((name, value) for name, value in own.items() if name.lower() not in names), *stated]


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader, max_bytes: int) -> bytes | str:
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            location = dict(event.headers).get(b"location", b"").decode("latin-1")
            if event.status_code in _REDIRECTS and location:
                return location
            if event.status_code != 200:
                raise FetchError(f"{event.status_code} {event.reason.decode('latin-1')}".strip())
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > max_bytes:
                raise FetchError(f"more than {max_bytes} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)
        elif isinstance(event, h11.ConnectionClosed):
            raise FetchError("the connection was closed before the answer")
