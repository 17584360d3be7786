"""Memory that the C library keeps for later, given back to the kernel (glibc: mallopt(3), malloc_trim(3)).

By itself glibc returns less and less: each large block that is freed raises its limits, up to 64 MiB of free memory.
One list of all containers, or one answer with all pods, would be kept for good in every process that has met it.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
KEPT_BYTES: Final = 128 * 1024
"""glibc's own limits at the start of a process. Once set they stay so."""
HEAPS: Final = 1
"""For all threads, of which Python runs one at a time: each of them would keep 150 KiB in a heap of its own."""
_BLOCKS: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
LIMITS: Final = (
    (_M_MMAP_THRESHOLD, KEPT_BYTES, _BLOCKS),
    (_M_TRIM_THRESHOLD, KEPT_BYTES, _BLOCKS),
    (_M_ARENA_MAX, HEAPS, ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")),
)
"""Each limit, and the variables by which somebody else may have chosen it."""
WORKED_S: Final = 0.2
"""CPU time after which there may be something to give back: it takes one or two milliseconds."""
RESTS_S: Final = 0.01
"""CPU time between two looks, at most, of a process whose work is over."""


def fix_limits() -> None:
    """Keep glibc's limits as they are at the start, and one heap, in this process and its forks, unless an operator has
    set them. Nothing happens with another C library."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        for limit, value, by_operator in LIMITS:
            if not any(name in os.environ for name in by_operator):
                mallopt(limit, value)


def trim() -> None:
    """Give back every free page of the heap, those between used ones too, after what only holds itself: a process that
    makes little garbage looks for it rarely, and what comes next would be put behind it."""
    gc.collect()
    malloc_trim = _of_glibc("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None)


class SpareMemory:
    """Gives memory back when work is over: once, until there was more of it."""

    def __init__(self, cpu_s: Callable[[], float], give_back: Callable[[], None] = trim) -> None:
        """``cpu_s`` is the CPU time of this process so far."""
        self._cpu_s = cpu_s
        self._give_back = give_back
        self._given_at_s = self._looked_at_s = cpu_s()

    def look(self) -> None:
        """Called every few seconds."""
        now_s = self._cpu_s()
        rests, self._looked_at_s = now_s - self._looked_at_s <= RESTS_S, now_s
        if rests and now_s - self._given_at_s >= WORKED_S:
            self._give_back()
            self._given_at_s = self._looked_at_s = self._cpu_s()
