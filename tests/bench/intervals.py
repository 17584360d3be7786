"""How sure a median is. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

CONFIDENCE: Final = 0.95


class Middle(NamedTuple):
    """The median of rounds' figures, and the interval that holds the true one 95 times of 100."""

    median: float
    low: float
    high: float

    def is_nothing(self) -> bool:
        """Whether these ratios show no difference."""
        return self.low <= 1.0 <= self.high

    def text(self) -> str:
        told = f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"
        return f"{told}, no difference seen" if self.is_nothing() else told


def middle(figures: Sequence[float]) -> Middle:
    """Median and interval of independent figures of any distribution, by their order alone: each is above the true
    median as often as below. Fewer than six are too few for that; then nothing is excluded."""
    ordered = sorted(figures)
    cut = _cut(len(ordered))
    if cut is None:
        return Middle(statistics.median(ordered), -math.inf, math.inf)
    return Middle(statistics.median(ordered), ordered[cut], ordered[-1 - cut])


def _cut(count: int) -> int | None:
    """How many figures may be left away at each end."""
    cut, outside = -1, 0.0
    while (outside := outside + 2 * math.comb(count, cut + 1) / 2**count) <= 1 - CONFIDENCE:
        cut += 1
    return cut if cut >= 0 else None
