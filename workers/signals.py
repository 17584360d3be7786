"""Signals by name and number, as v1 and Podman write them (github.com/moby/sys/signal, signal_linux.go). Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final

RTMIN: Final = 34
"""The first real-time signal that glibc leaves to programs. Fixed: it is a number of the container, not of ours."""
RTMAX: Final = 64

_ALIASES: Final[Mapping[str, int]] = {
    "SIGCLD": signal.SIGCHLD,
    "SIGIOT": signal.SIGABRT,
    "SIGPOLL": signal.SIGIO,
    "SIGRTMIN": RTMIN,
    "SIGRTMAX": RTMAX,
}


def signal_number(name: str) -> int:
    """``SIGTERM``, ``SIGRTMIN+3``, ``SIGRTMAX-1``, … Raises ValueError for anything else."""
    base, sign, offset = name.partition("+") if "+" in name else name.partition("-")
    if sign and offset.isascii() and offset.isdigit() and (base, sign) in (("SIGRTMIN", "+"), ("SIGRTMAX", "-")):
        number = _ALIASES[base] + int(f"{sign}{offset}")
        if RTMIN <= number <= RTMAX:
            return number
    elif name in _ALIASES:
        return int(_ALIASES[name])
    elif name in signal.Signals.__members__:
        return int(signal.Signals[name])
    raise ValueError(f"no such signal: {name}")
