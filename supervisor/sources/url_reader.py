"""Reads the source ``http`` from a URL (pkg/kubelet/config/http.go). Imported where one is configured."""

from __future__ import annotations

from typing import Final

from supervisor.config.shown_settings import shown_url
from supervisor.protocol.manifests import HTTP_SOURCE, ManifestError, ManifestErrorKind, SourceSnapshot
from supervisor.sources.http_fetch import FetchError, Headers, fetch
from supervisor.sources.http_source import HttpSource, failed

FETCH_TIMEOUT_S: Final = 10.0
"""pkg/kubelet/config/http.go, NewSourceURL."""


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
        """The set of a body. An empty one is an empty set, and an error (extractFromURL)."""
        if body:
            return self._source.snapshot(self.name, body)
        nothing = ManifestError(kind=ManifestErrorKind.INVALID, file="", message=f"zero-length data from {self.name}")
        return SourceSnapshot(source=HTTP_SOURCE, errors=(nothing,), complete=True)
