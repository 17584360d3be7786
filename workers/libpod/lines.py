"""Lines of an answer that comes in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MAX_LINE_BYTES: Final = 1024 * 1024
"""Longest line that is waited for."""


class LineSplitter:
    """Cuts bytes into lines, in time that grows with their number alone. Empty lines are passed over."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Lines that end in this part. Raises ConnectionResetError for one that is longer than `MAX_LINE_BYTES`."""
        *whole, rest = part.split(b"\n")
        for piece in whole:
            yield from self._line(piece)
        self._begun.append(rest)
        self._begun_bytes += len(rest)
        if self._begun_bytes > MAX_LINE_BYTES:
            raise ConnectionResetError(f"a line of more than {MAX_LINE_BYTES} bytes")

    def end(self) -> Iterator[bytes]:
        """The last line, when it has no end of its own."""
        yield from self._line(b"")

    def _line(self, piece: bytes) -> Iterator[bytes]:
        line = b"".join((*self._begun, piece)).rstrip(b"\r")
        self._begun, self._begun_bytes = [], 0
        if line:
            yield line
