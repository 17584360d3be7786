"""Times of objects for people: how long ago, and when in the reader's own zone."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ipc.host.clock import parse_rfc3339
from ipc.host.text.human import human_duration

UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"


def since(timestamp: str | None, now: float) -> str:
    """How long ago that RFC 3339 time was, at ``now`` in epoch seconds (printers.go, translateTimestampSince)."""
    if not timestamp:
        return UNKNOWN
    try:
        return human_duration(now - parse_rfc3339(timestamp))
    except ValueError:
        return UNKNOWN


def local_time(timestamp: str | None) -> str:
    """An RFC 3339 time as descriptions show it, in the user's zone: ``Thu, 01 Jan 2026 00:00:00 +0000``."""
    if not timestamp:
        return UNKNOWN
    try:
        # In English: nothing here sets the locale that these names would follow (LC_TIME).
        return datetime.fromtimestamp(parse_rfc3339(timestamp)).astimezone().strftime("%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        return UNKNOWN
