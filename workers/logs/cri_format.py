"""Container logs as conmon writes them, line by line. Pure: bytes in, bytes out.

The format is the CRI's: ``<RFC3339Nano> <stream> <F|P> <message>``, ``P`` for a piece of a line that goes on in the
next entry (cri-client pkg/logs/logs.go, parseCRILog).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339

MAX_ENTRY_BYTES: Final = 64 * 1024
"""Longest entry; conmon cuts lines at 8 KiB. What is longer was not written by it and is skipped."""

_STREAMS: Final = frozenset((b"stdout", b"stderr"))
_FULL: Final = b"F"
_PARTIAL: Final = b"P"


class LogEntry(msgspec.Struct, frozen=True):
    """One entry of a log file."""

    timestamp: bytes
    """As it was written."""
    stream: bytes
    """``stdout`` or ``stderr``."""
    partial: bool
    message: bytes
    """Without the line's end."""


def parse_entry(line: bytes) -> LogEntry | None:
    """One line of the file, without its newline; None when it is not in the CRI's format.

    Tags after the first may follow a colon and mean nothing yet, as upstream.
    """
    parts = line.split(b" ", 3)
    if len(parts) < 3 or not parts[0] or parts[1] not in _STREAMS:
        return None
    tag = parts[2].split(b":", 1)[0]
    if tag not in (_FULL, _PARTIAL):
        return None
    return LogEntry(parts[0], parts[1], tag == _PARTIAL, parts[3] if len(parts) > 3 else b"")


def time_of(line: bytes) -> float | None:
    """Epoch seconds of an entry; None of a line that is none."""
    entry = parse_entry(line)
    if entry is None:
        return None
    try:
        return parse_rfc3339(entry.timestamp.decode("ascii", "replace"))
    except ValueError:
        return None


class LineCutter:
    """Cuts a byte stream into lines. Holds less than one maximal entry between calls."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, without their newlines; over-long ones are left out."""
        *lines, rest = (self._rest + data).split(b"\n")
        if lines and self._skipping:
            del lines[0]
            self._skipping = False
        if len(rest) > MAX_ENTRY_BYTES:
            rest, self._skipping = b"", True
        self._rest = b"" if self._skipping else rest
        return [line for line in lines if len(line) <= MAX_ENTRY_BYTES]

    def reset(self) -> None:
        """The stream begins anew: half a line will not be completed."""
        self._rest, self._skipping = b"", False


class LogRenderer:
    """Output for a client: messages of entries, cut by time and size (logs.go, logWriter)."""

    def __init__(
        self, *, timestamps: bool, since: float = 0.0, limit_bytes: int | None = None, stream: str = ""
    ) -> None:
        """``since`` in epoch seconds; 0.0 shows everything. ``limit_bytes`` counts what is shown. ``stream``:
        ``stdout`` or ``stderr``; empty for both."""
        self._stream = stream.encode()
        self._timestamps = timestamps
        self._since = since
        self._left = limit_bytes
        self._in_line = False

    @property
    def full(self) -> bool:
        """The limit is reached; nothing more will be shown."""
        return self._left is not None and self._left <= 0

    def render(self, lines: list[bytes]) -> bytes:
        """Entries of these lines. Lines in an unknown format are left out, as upstream."""
        shown = b"".join(map(self._render_one, lines))
        if self._left is not None:
            shown = shown[: self._left]
            self._left -= len(shown)
        return shown

    def _render_one(self, line: bytes) -> bytes:
        entry = parse_entry(line)
        if entry is None or (self._stream and entry.stream != self._stream) or not self._is_recent(entry):
            return b""
        prefix = entry.timestamp + b" " if self._timestamps and not self._in_line else b""
        self._in_line = entry.partial
        return prefix + entry.message + (b"" if entry.partial else b"\n")

    def _is_recent(self, entry: LogEntry) -> bool:
        if not self._since:
            return True
        try:
            recent = parse_rfc3339(entry.timestamp.decode("ascii", "replace")) >= self._since
        except ValueError:
            return False
        if recent:
            self._since = 0.0  # A log is in order: whatever follows is newer.
        return recent
