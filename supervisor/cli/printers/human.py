"""Times and durations for people (apimachinery pkg/util/duration, HumanDuration)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ipc.host.clock import parse_rfc3339

UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
_YEAR_S: Final = 365 * _DAY_S

_SCALES: Final = (
    # below, unit, its letter, next smaller unit that is still shown, its letter
    (2 * _MINUTE_S, 1, "s", 0, ""),
    (10 * _MINUTE_S, _MINUTE_S, "m", 1, "s"),
    (3 * _HOUR_S, _MINUTE_S, "m", 0, ""),
    (8 * _HOUR_S, _HOUR_S, "h", _MINUTE_S, "m"),
    (2 * _DAY_S, _HOUR_S, "h", 0, ""),
    (8 * _DAY_S, _DAY_S, "d", _HOUR_S, "h"),
    (2 * _YEAR_S, _DAY_S, "d", 0, ""),
    (8 * _YEAR_S, _YEAR_S, "y", _DAY_S, "d"),
)


def human_duration(duration_s: float) -> str:
    """Two or three significant figures: ``119s``, ``2m``, ``5m3s``, ``3h5m``, ``2d1h``, ``400d``, ``9y``.

    Slightly negative ones are 0s (clocks differ); more so, ``<invalid>``.
    """
    seconds = int(duration_s)
    if seconds < -1:
        return "<invalid>"
    seconds = max(0, seconds)
    for below_s, unit_s, letter, rest_unit_s, rest_letter in _SCALES:
        if seconds < below_s:
            rest = seconds % unit_s // rest_unit_s if rest_unit_s else 0
            return f"{seconds // unit_s}{letter}" + (f"{rest}{rest_letter}" if rest else "")
    return f"{seconds // _YEAR_S}y"


def since(timestamp: str | None, now: float) -> str:
    """How long ago that RFC 3339 time was, at ``now`` in epoch seconds."""
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
