"""Durations as the kubelet's configuration writes them: ``1m30s``, ``500ms``, ``1.5h``.

The grammar and the printed form are those of Go's ``time.ParseDuration`` and ``time.Duration.String``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM: Final = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]+)", re.ASCII)
_NUMBER: Final = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_MAX_NS: Final = 2**63 - 1
MAX_DURATION_CHARS: Final = 64
"""Longest text that is looked at as a duration, in characters."""


def parse_duration(text: str) -> float:
    """Seconds of a Go duration (time.ParseDuration). Raises ValueError and says what is wrong with the text."""
    shown = text[:MAX_DURATION_CHARS]
    sign, unsigned = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if unsigned == "0":
        return 0.0
    if not unsigned or len(text) > MAX_DURATION_CHARS:
        raise ValueError(f'invalid duration "{shown}"')
    nanoseconds = Fraction(0)
    position = 0
    while position < len(unsigned):
        term = _TERM.match(unsigned, position)
        if term is None:
            missing_unit = _NUMBER.fullmatch(unsigned, position)
            raise ValueError(f'{"missing unit in" if missing_unit else "invalid"} duration "{shown}"')
        if term[2] not in _UNITS_NS:
            raise ValueError(f'unknown unit "{term[2]}" in duration "{shown}"')
        nanoseconds += Fraction(term[1].rstrip(".")) * _UNITS_NS[term[2]]
        position = term.end()
    if nanoseconds > _MAX_NS:
        raise ValueError(f'invalid duration "{shown}": longer than 292 years')
    return sign * float(nanoseconds / _UNITS_NS["s"])


def format_duration(duration_s: float) -> str:
    """Seconds as Go prints a duration (time.Duration.String): ``1m30s``, ``1h0m0s``, ``500ms``, ``0s``."""
    nanoseconds = round(abs(duration_s) * _UNITS_NS["s"])
    sign = "-" if duration_s < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    for unit in ("ms", "µs", "ns"):
        if _UNITS_NS[unit] <= nanoseconds < _UNITS_NS["s"]:
            return f"{sign}{_decimal(nanoseconds, _UNITS_NS[unit])}{unit}"
    minutes, rest_ns = divmod(nanoseconds, _UNITS_NS["m"])
    hours, minutes_of_hour = divmod(minutes, 60)
    text = f"{_decimal(rest_ns, _UNITS_NS['s'])}s"
    if minutes:
        text = f"{minutes_of_hour}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    """``value / unit`` exactly, without trailing zeros; ``unit`` is a power of ten."""
    whole, rest = divmod(value, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
