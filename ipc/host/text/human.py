"""Durations (apimachinery pkg/util/duration, duration.go) and sizes for people."""

from __future__ import annotations

from typing import Final

INVALID: Final = "<invalid>"

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
_SHORT_SCALES: Final = (
    (_MINUTE_S, 1, "s"),
    (_HOUR_S, _MINUTE_S, "m"),
    (_DAY_S, _HOUR_S, "h"),
    (_YEAR_S, _DAY_S, "d"),
)


def human_duration(duration_s: float) -> str:
    """Two or three significant figures: ``119s``, ``2m``, ``5m3s``, ``3h5m``, ``2d1h``, ``400d``, ``9y``.

    Slightly negative ones are 0s (clocks differ); more so, ``<invalid>`` (HumanDuration).
    """
    seconds = int(duration_s)
    if seconds < -1:
        return INVALID
    seconds = max(0, seconds)
    for below_s, unit_s, letter, rest_unit_s, rest_letter in _SCALES:
        if seconds < below_s:
            rest = seconds % unit_s // rest_unit_s if rest_unit_s else 0
            return f"{seconds // unit_s}{letter}" + (f"{rest}{rest_letter}" if rest else "")
    return f"{seconds // _YEAR_S}y"


def short_human_duration(duration_s: float) -> str:
    """One figure and one unit: ``59s``, ``1m``, ``23h``, ``364d``, ``2y`` (ShortHumanDuration)."""
    seconds = int(duration_s)
    if seconds < -1:
        return INVALID
    seconds = max(0, seconds)
    found = next((scale for scale in _SHORT_SCALES if seconds < scale[0]), None)
    return f"{seconds // _YEAR_S}y" if found is None else f"{seconds // found[1]}{found[2]}"


def mebibytes(count: int | None) -> str:
    """``12.3Mi``; ``<none>`` when not known."""
    return "<none>" if count is None else f"{count / 1024**2:.1f}Mi"
