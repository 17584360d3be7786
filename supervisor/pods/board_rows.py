"""Board rows of pods."""

from __future__ import annotations

SPARE_ROWS = 64
"""Board rows beyond maxPods: for pods on their way out, and orphans."""
NO_ROW = -1
"""The board is full: the pod's views travel in messages."""


class RowAllocator:
    """Free rows, lowest first."""

    def __init__(self, rows: int) -> None:
        self._free = list(range(rows - 1, -1, -1))

    def assign(self) -> int:
        return self._free.pop() if self._free else NO_ROW

    def give_back(self, row: int) -> None:
        if row != NO_ROW:
            self._free.append(row)
