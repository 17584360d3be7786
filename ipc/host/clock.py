"""Time. This file alone reads the host's clocks; all other code is given an :class:`Instant`.

A core gets an Instant, a shell with an event loop a :class:`Clock`. Processes without a loop call `monotonic` and
`wall`; deadlines of `asyncio.timeout_at` are counted in `loop_clock.loop_time`.
"""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, Protocol

import msgspec

MAX_TIMESTAMP_CHARS: Final = 64
"""Longest text that is looked at as a timestamp, in characters."""

_DAY_S: Final = 86_400
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_ZERO_TIME_S: Final = (date(1, 1, 1).toordinal() - _EPOCH_DAY) * _DAY_S
"""Go's zero ``time.Time`` in epoch seconds."""

_RFC3339: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt ]"
    r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9])(?P<fraction>\.[0-9]+)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>[01][0-9]|2[0-3]):(?P<zone_minute>[0-5][0-9]))"
)


class Instant(msgspec.Struct, frozen=True):
    """One moment on both clocks."""

    mono: float
    """CLOCK_MONOTONIC seconds: comparable between all processes of one boot, meaningless after a reboot."""
    wall: float
    """Epoch seconds: for people and for Podman's timestamps; may jump."""


class Clock(Protocol):
    """The source of time of an I/O shell. Tests pass a simulated one."""

    def now(self) -> Instant: ...


class SystemClock:
    """The real clocks."""

    def now(self) -> Instant:
        return Instant(mono=time.monotonic(), wall=time.time())


def monotonic() -> float:
    """CLOCK_MONOTONIC in seconds."""
    return time.monotonic()


def thread_cpu() -> float:
    """CPU time of the calling thread, in seconds."""
    return time.thread_time()


def process_cpu() -> float:
    """CPU time of all threads of this process, in seconds."""
    return time.process_time()


def wall() -> float:
    """Epoch seconds."""
    return time.time()


def rfc3339(wall: float) -> str:
    """Epoch seconds as v1 ``metav1.Time`` prints them: UTC, fractions cut off, ``2026-01-01T00:00:00Z``.

    Raises ValueError outside the years 1 to 9999.
    """
    return _printed(math.floor(_finite(wall)))


@lru_cache(maxsize=256)  # 320 bytes each
def _printed(seconds: int) -> str:
    """Every status of a pod shows the same few dates again."""
    return _utc(seconds).isoformat(timespec="seconds").replace("+00:00", "Z")


def rfc3339_micro(wall: float) -> str:
    """Epoch seconds as v1 ``metav1.MicroTime`` prints them: UTC, ``2026-01-01T00:00:00.000000Z``.

    Raises ValueError outside the years 1 to 9999.
    """
    seconds, micros = divmod(round(_finite(wall) * 1_000_000), 1_000_000)
    return f"{_printed(seconds)[:-1]}.{micros:06}Z"


@lru_cache(maxsize=64)  # events that are restored come in the order of their dates, many of a second
def parse_rfc3339(text: str) -> float:
    """RFC 3339 as Go prints it (any number of fraction digits, any zone offset) to epoch seconds.

    Go's zero time, which Podman shows for *never*, is 0.0. A float keeps the present to about 0.2 microseconds;
    further digits are lost. Raises ValueError for anything else.
    """
    match = _RFC3339.fullmatch(text) if len(text) <= MAX_TIMESTAMP_CHARS else None
    if match is None:
        raise ValueError(f"not an RFC 3339 timestamp: {text[:MAX_TIMESTAMP_CHARS]!r}")
    day = date(int(match["year"]), int(match["month"]), int(match["day"])).toordinal() - _EPOCH_DAY
    seconds = day * _DAY_S + _clock_s(match["hour"], match["minute"], match["second"])
    if match["sign"]:
        offset_s = _clock_s(match["zone_hour"], match["zone_minute"], "0")
        seconds -= offset_s if match["sign"] == "+" else -offset_s
    if seconds == _ZERO_TIME_S:
        return 0.0
    return seconds + float(match["fraction"] or 0)


def _clock_s(hour: str, minute: str, second: str) -> int:
    return int(hour) * 3600 + int(minute) * 60 + int(second)


def _finite(wall: float) -> float:
    if not math.isfinite(wall):
        raise ValueError(f"not a time: {wall}")
    return wall


def _utc(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"time out of range: {seconds} s") from error
