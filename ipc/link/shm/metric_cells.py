"""Cells in which every process counts: eight bytes each, in one anonymous shared mapping made before the first fork.

Each slot has a row of cells, and so has the master; the process that runs there is the row's only writer. The next
incarnation of a slot goes on with the same cells, so no count is lost with a worker, and none goes backwards but at the
agent's start. A count is one addition in memory: its place follows from the table (`ipc.link.metrics.table`). A cell is
loaded and stored whole (see `ipc.link.shm.board`); of a histogram under way a reader may see the bucket before the sum.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from ipc.link.metrics.model import Metric, MetricType
from ipc.link.metrics.table import LAYOUT

_CELL_BYTES: Final = 8
_ROW_BYTES: Final = -(-LAYOUT.size * _CELL_BYTES // mmap.PAGESIZE) * mmap.PAGESIZE


class MetricCells:
    """The mapping. Untouched pages are no memory; a page that is read is: so which rows are used stands before them."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._first = -(-rows // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = memoryview(mmap.mmap(-1, self._first + rows * _ROW_BYTES))

    def use(self, number: int) -> memoryview[float]:
        """Cells in which somebody counts from now on. Raises IndexError."""
        row = self.row(number)
        self._memory[number] = 1
        return row

    def row(self, number: int) -> memoryview[float]:
        """Cells of a slot; those of the master come last. Raises IndexError."""
        if not 0 <= number < self.rows:
            raise IndexError(f"row {number} of {self.rows}")
        start = self._first + number * _ROW_BYTES
        return self._memory[start : start + LAYOUT.size * _CELL_BYTES].cast("d")

    def read(self, api_server: int | None = None) -> dict[int, array[float]]:
        """Values of every row in which somebody has counted, by its number. Cells that only the API server uses are
        read in its row."""
        return {number: self._read(number, number == api_server) for number in range(self.rows) if self._memory[number]}

    def _read(self, number: int, whole: bool) -> array[float]:
        values = array("d", bytes(LAYOUT.size * _CELL_BYTES))
        length = LAYOUT.size if whole else LAYOUT.shared
        memoryview(values)[:length] = self.row(number)[:length]
        return values


class Counter:
    """One series that only grows."""

    __slots__ = ("_at", "_meters")

    def __init__(self, meters: Meters, at: int) -> None:
        self._meters = meters
        self._at = at

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""
        self._meters.cells[self._at] += amount

    def set(self, value: float) -> None:
        """Replace the value of a gauge."""
        self._meters.cells[self._at] = value


class Histogram:
    """One series of a histogram."""

    __slots__ = ("_at", "_bounds", "_meters")

    def __init__(self, meters: Meters, at: int, bounds: Sequence[float]) -> None:
        self._meters = meters
        self._at = at
        self._bounds = bounds

    def observe(self, value: float) -> None:
        """Count a value."""
        cells, bounds = self._meters.cells, self._bounds
        cells[self._at + bisect_left(bounds, value)] += 1.0
        cells[self._at + len(bounds) + 1] += value


class Meters:
    """One process's counters. Until it is attached it counts for itself. For the thread of the loop."""

    def __init__(self) -> None:
        self.cells: memoryview[float] = _own_cells()
        self.row: int | None = None
        """Where it is attached."""

    def attach(self, cells: MetricCells, row: int) -> None:
        """Count there from now on. After the fork."""
        self.cells, self.row = cells.use(row), row

    def detach(self) -> None:
        """Count for itself again, from zero."""
        self.cells, self.row = _own_cells(), None

    def counter(self, metric: Metric, *values: str) -> Counter:
        """The series with these label values. Raises ValueError for values that the table does not have."""
        assert metric.type is not MetricType.HISTOGRAM, metric.name
        return Counter(self, LAYOUT.cell(metric, *values))

    def histogram(self, metric: Metric, *values: str) -> Histogram:
        """Likewise."""
        assert metric.type is MetricType.HISTOGRAM, metric.name
        return Histogram(self, LAYOUT.cell(metric, *values), metric.buckets)

    def value(self, metric: Metric, *values: str) -> float:
        """Count of this process; of a histogram the number of values."""
        at = LAYOUT.cell(metric, *values)
        return float(sum(self.cells[at : at + max(1, metric.width - 1)]))


def _own_cells() -> memoryview[float]:
    """Cells that no other process sees: untouched pages are no memory here either."""
    return memoryview(mmap.mmap(-1, _ROW_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)).cast("d")


METERS: Final = Meters()
"""This process's."""
