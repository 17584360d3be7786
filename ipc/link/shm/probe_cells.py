"""Counts of each pod's probes, beside the pod's row on the board (`prober_probe_total` and its histogram).

Their labels name pods and containers, so they have no place in a table: a probe takes the next free place of its pod's
row and signs it with a number made of its names. The worker that probes the pod is the only writer; after a death, or
when the pod has moved, the next one goes on in the same places. The row of a pod that is gone serves another one, whose
first probe empties it. A pod has room for `MAX_PROBES`; further probes are not counted.
"""

from __future__ import annotations

import hashlib
import mmap
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.metrics.kubelet import PROBE_DURATION, PROBE_RESULTS

MAX_PROBES: Final = 16
"""Probes of one pod that are counted."""

_CELL_BYTES: Final = 8
_BOUNDS: Final = PROBE_DURATION.buckets
_RESULTS_AT: Final = 1
_BUCKETS_AT: Final = _RESULTS_AT + len(PROBE_RESULTS)
_SUM_AT: Final = _BUCKETS_AT + len(_BOUNDS) + 1
_PROBE_CELLS: Final = _SUM_AT + 1
_ROW_CELLS: Final = 1 + MAX_PROBES * _PROBE_CELLS
"""The pod's number, and its probes."""


class ProbeCounts(msgspec.Struct, frozen=True):
    """Counts of one probe."""

    results: Mapping[str, float]
    """By the values of the label ``result``."""
    buckets: tuple[float, ...]
    """Numbers by duration: not cumulative, the one without a bound last."""
    sum_s: float


class ProbeCells:
    """The mapping, with a row for each of the board's pod rows. Untouched pages are no memory."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        memory = memoryview(mmap.mmap(-1, rows * _ROW_CELLS * _CELL_BYTES))
        self._numbers = memory.cast("Q")
        self._counts = memory.cast("d")

    def count(self, row: int, uid: str, container: str, type: ProbeType, result: str, took_s: float) -> None:
        """Count an attempt. For the worker that probes the pod. A row beyond the board's is passed over."""
        if not 0 <= row < self.rows:
            return
        start, pod = row * _ROW_CELLS, _number(uid)
        if self._numbers[start] != pod:
            for cell in range(start, start + _ROW_CELLS):
                self._numbers[cell] = 0
            self._numbers[start] = pod
        at = self._place(start, _number(uid, container, type))
        if at is None:
            return
        counts = self._counts
        counts[at + _RESULTS_AT + PROBE_RESULTS.index(result)] += 1.0
        counts[at + _BUCKETS_AT + bisect_left(_BOUNDS, took_s)] += 1.0
        counts[at + _SUM_AT] += took_s

    def rows_by_pod(self) -> dict[int, int]:
        """Row of each pod that has counts, by its number (`of`)."""
        return {pod: row for row, pod in enumerate(self._numbers[::_ROW_CELLS].tolist()) if pod}

    def of(self, rows: Mapping[int, int], uid: str, container: str, type: ProbeType) -> ProbeCounts | None:
        """Counts of a probe; None without any. ``rows`` as `rows_by_pod` has them."""
        row = rows.get(_number(uid))
        at = None if row is None else self._find(row * _ROW_CELLS, _number(uid, container, type))
        if at is None:
            return None
        cells = self._counts[at : at + _PROBE_CELLS].tolist()
        return ProbeCounts(
            dict(zip(PROBE_RESULTS, cells[_RESULTS_AT:_BUCKETS_AT], strict=True)),
            tuple(cells[_BUCKETS_AT:_SUM_AT]),
            cells[_SUM_AT],
        )

    def _place(self, start: int, number: int) -> int | None:
        """The probe's first cell, its own already or taken now; None without room."""
        at = self._find(start, number)
        if at is None and (at := self._find(start, 0)) is not None:
            self._numbers[at] = number
        return at

    def _find(self, start: int, number: int) -> int | None:
        places = range(start + 1, start + _ROW_CELLS, _PROBE_CELLS)
        return next((at for at in places if self._numbers[at] == number), None)


def _number(*names: str) -> int:
    """64 bits, never 0, that stand for names, which come from manifests and may be long."""
    text = "\0".join(names).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_CELL_BYTES).digest(), "little") | 1
