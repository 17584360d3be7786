"""Answers of an HTTP/1.1 server, parsed by httptools out of the bytes of one connection. Sans I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import httptools

SWITCHING_PROTOCOLS: Final = 101
NO_HTTP: Final = "no HTTP in the answer"

_BODILESS: Final = frozenset((204, 304))


class TooLargeError(Exception):
    """The answer's body is larger than the caller takes."""


class HttpAnswer:
    """One answer after the other, as httptools reads them: it calls the ``on_`` methods."""

    def __init__(self, max_head_bytes: int) -> None:
        """An answer is broken whose head has not ended after so many bytes, what announces it (100, 103) among them."""
        self._max_head_bytes = max_head_bytes
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Another one is to come."""
        self.status = 0
        self.fields: list[tuple[bytes, bytes]] = []
        """Headers as they have come, but for their names, which are in small letters."""
        self.is_whole = False
        self.keep_alive = False
        self.has_surplus = False
        """More has come than the answer."""
        self.broken: ConnectionResetError | None = None
        """No HTTP has come, after what was read."""
        self.ends_with_close = False
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self.received_bytes = 0
        """Bytes that have come since `begin`."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer, names in small letters."""
        return decoded_headers(self.fields)

    def feed(self, data: bytes) -> None:
        """Take what has come; `broken` says when that cannot be an answer."""
        assert self._parser is not None
        self.received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switched:
            self._parts.append(data[switched.args[0] :])
        except httptools.HttpParserError as error:
            self.broken = ConnectionResetError(f"{NO_HTTP}: {error}")
        if self.broken is None and not self.status and self.received_bytes > self._max_head_bytes:
            self.broken = ConnectionResetError(f"{NO_HTTP}: its head has more than {self._max_head_bytes} bytes")

    def end(self) -> None:
        """The server has closed the connection. Raises ConnectionResetError when that is no end of the answer."""
        if not self.status or not self.ends_with_close:
            raise ConnectionResetError("the answer broke off" if self.status else f"{NO_HTTP}: it ended")
        self.is_whole = True

    def take(self) -> list[bytes]:
        """Parts of the body that have come since the last time."""
        taken, self._parts, self._parts_bytes = self._parts, [], 0
        return taken

    def take_whole(self, max_bytes: int) -> bytes | None:
        """The body, once all of it has come and if nothing of it was taken; None before. Raises TooLargeError, as soon
        as more has come."""
        if self._parts_bytes > max_bytes:
            raise TooLargeError(f"an answer of more than {max_bytes} bytes")
        return b"".join(self.take()) if self.is_whole else None

    def forget(self) -> None:
        """Parser and callbacks refer to each other, and would wait for the garbage collector."""
        self._parser = None

    def on_message_begin(self) -> None:
        self.has_surplus = self.is_whole

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_surplus:
            self.fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if self.has_surplus or (status < 200 and status != SWITCHING_PROTOCOLS):
            return
        self.status = status
        fields = dict(self.fields)
        has_length = b"content-length" in fields or fields.get(b"transfer-encoding", b"").endswith(b"chunked")
        self.ends_with_close = status not in _BODILESS and not has_length

    def on_body(self, data: bytes) -> None:
        if not self.has_surplus:
            self._parts.append(data)
            self._parts_bytes += len(data)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if not self.status:
            self.fields = []
        elif self.status != SWITCHING_PROTOCOLS:
            self.is_whole = True
            self.keep_alive = self._parser.should_keep_alive()


def decoded_headers(fields: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers as text: when they are asked for, since most answers are taken for their body alone."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in fields}
