"""Signals by name, as manifests and images write them. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final

REAL_TIME_MIN: Final = 34
"""glibc's, which Podman takes for everybody's."""
REAL_TIME_MAX: Final = 64
MAX_NUMBER_CHARS: Final = 10
"""Longest text that is parsed as a number: images write it."""

_OTHER_NAMES: Final[Mapping[str, int]] = {
    "SIGCLD": signal.SIGCHLD,
    "SIGIOT": signal.SIGABRT,
    "SIGPOLL": signal.SIGIO,
    "SIGRTMIN": REAL_TIME_MIN,
    "SIGRTMAX": REAL_TIME_MAX,
}


def signal_name(value: int | str) -> str:
    """``SIGTERM`` for 15, ``15``, ``TERM``, ``SIGTERM``; ``SIGRTMIN+3`` for 37. Empty for what is no signal."""
    if isinstance(value, str) and not value.isdecimal():
        return value if not value or value.startswith("SIG") else f"SIG{value}"
    number = int(value) if isinstance(value, int) or _is_number(value) else 0
    if REAL_TIME_MIN <= number <= REAL_TIME_MAX:
        return _real_time_name(number)
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_CHARS


def _real_time_name(number: int) -> str:
    """Counted from the nearer end (pkg/signal of containers/common)."""
    up, down = number - REAL_TIME_MIN, REAL_TIME_MAX - number
    if up <= down:
        return f"SIGRTMIN+{up}" if up else "SIGRTMIN"
    return f"SIGRTMAX-{down}" if down else "SIGRTMAX"


def signal_number(name: str) -> int:
    """15 for ``SIGTERM``, 37 for ``SIGRTMIN+3``. Raises ValueError for what v1 does not take for a signal."""
    base, sign, offset = name.partition("-" if name.startswith("SIGRTMAX") else "+")
    number = _OTHER_NAMES.get(base) or signal.Signals.__members__.get(base) or 0
    if sign and number in (REAL_TIME_MIN, REAL_TIME_MAX) and _is_number(offset):
        number += int(f"{sign}{offset}")
        sign = "" if REAL_TIME_MIN <= number <= REAL_TIME_MAX else sign
    if sign or not number:
        raise ValueError(f"no such signal: {name}")
    return int(number)
