"""Names of rotated logs, and which of them stay. Pure.

``<log>.<timestamp>``, then ``<log>.<timestamp>.gz``: as pkg/kubelet/logs/container_log_manager.go has it. Different on
purpose: a timestamp is always later than that of the file before it, also when two rotations fall into one second or
the clock goes back, so that no rotation overwrites another and the order of names is the order of lines. Files of other
names belong to somebody else: ``<log>.tmp`` is conmon's.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Final

COMPRESSED: Final = ".gz"
TEMPORARY: Final = ".tmp"
"""Ends the name of a file that is being compressed."""
_TIMESTAMP_FORMAT: Final = "%Y%m%d-%H%M%S"


@functools.lru_cache(maxsize=64)
def _rotated(log: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(log)}\.[0-9]{{8}}-[0-9]{{6}}(\.gz)?(\.tmp)?")


def rotated_of(log: str, names: Iterable[str]) -> list[str]:
    """Names, out of these, of files that rotation of that log has made; sorted, unused ones too."""
    return sorted(filter(_rotated(log).fullmatch, names))


def split_unused(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Logs in use, and leftovers of a rotation that was cut short: temporary files, and files that were compressed
    already (filterUnusedLogs)."""
    there = frozenset(names)
    unused = [name for name in names if name.endswith(TEMPORARY) or name + COMPRESSED in there]
    return [name for name in names if name not in unused], unused


def split_excess(names: Iterable[str], max_files: int) -> tuple[list[str], list[str]]:
    """Rotated logs that stay when one more is rotated, and those that go: the oldest (removeExcessLogs)."""
    ordered = sorted(names)
    cut = max(0, len(ordered) - max(0, max_files - 2))
    return ordered[cut:], ordered[:cut]


def stem(name: str) -> str:
    """The name before it was compressed."""
    return name.removesuffix(COMPRESSED)


def next_name(log: str, wall: float, names: Iterable[str]) -> str:
    """Name for the log that is rotated at that time (epoch seconds; local time as upstream), after all of ``names``.
    Raises OverflowError when there is none."""
    stamp = f"{datetime.datetime.fromtimestamp(wall):{_TIMESTAMP_FORMAT}}"
    newest = max((stem(name.removesuffix(TEMPORARY)).removeprefix(f"{log}.") for name in names), default="")
    return f"{log}.{stamp if stamp > newest else _after(newest)}"


def _after(stamp: str) -> str:
    """The least that stands after it, which need not be a time."""
    digits = f"{int(stamp.replace('-', '')) + 1:014}"
    if len(digits) > 14:
        raise OverflowError(f"no timestamp stands after {stamp}")
    return f"{digits[:8]}-{digits[8:]}"
