"""How sure the median of some rounds is. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

import msgspec

CONFIDENCE: Final = 0.95


class Interval(msgspec.Struct, frozen=True):
    """Holds the true median 95 times of 100."""

    low: float
    high: float


def interval(figures: Sequence[float]) -> Interval | None:
    """Interval of independent figures of any distribution, by their order alone: each is above the true median as
    often as below. None for fewer than six, which are too few."""
    ordered, cut = sorted(figures), _left_away(len(figures))
    return None if cut is None else Interval(ordered[cut], ordered[-1 - cut])


def _left_away(count: int) -> int | None:
    """How many figures may be left away at each end."""
    cut, outside = -1, 0.0
    while (outside := outside + 2 * math.comb(count, cut + 1) / 2**count) <= 1 - CONFIDENCE:
        cut += 1
    return cut if cut >= 0 else None


def ratio_text(ratio: float, around: Interval | None) -> str:
    """The ratio of two sides, with its interval, for people."""
    if around is None:
        return f"{ratio:.2f}"
    told = f"{ratio:.2f} ({around.low:.2f} to {around.high:.2f})"
    return f"{told}, no difference seen" if around.low <= 1.0 <= around.high else told


def median_text(ratios: Sequence[float]) -> str:
    """The median of some rounds' ratios, with its interval, for people."""
    return ratio_text(statistics.median(ratios), interval(ratios))
