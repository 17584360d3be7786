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
        if whole:
            whole[0] = b"".join((*self._begun, whole[0]))
            self._begun, self._begun_bytes = [], 0
        for line in whole:
            if line := line.rstrip(b"\r"):
                yield line
        self._begun.append(rest)
        self._begun_bytes += len(rest)
        if self._begun_bytes > MAX_LINE_BYTES:
            raise ConnectionResetError(f"a line of more than {MAX_LINE_BYTES} bytes")

    def end(self) -> Iterator[bytes]:
        """The last line, when it has no end of its own."""
        yield from self.feed(b"\n")
