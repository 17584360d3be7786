"""Metrics of the PLEG, and calls of the runtime on its worker's row of the board."""

from __future__ import annotations

from typing import Final

from ipc.host.clock import Clock
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.runtime import CallCounts, Runtime

_RELIST_INTERVAL: Final = METERS.histogram(metrics.PLEG_RELIST_INTERVAL)
_RELIST_DURATION: Final = METERS.histogram(metrics.PLEG_RELIST_DURATION)
_POD_DURATION: Final = METERS.histogram(metrics.PLEG_POD_RELIST_DURATION)
_LAST_SEEN: Final = METERS.counter(metrics.PLEG_LAST_SEEN)


class PLEGMeter:
    """Counts relists and iterations."""

    def __init__(self, runtime: Runtime, clock: Clock, row_writer: WorkerRowWriter) -> None:
        self._runtime = runtime
        self._clock = clock
        self._row_writer = row_writer
        self._counted = CallCounts()
        self._relisted_at = 0.0
        """When the last relist began, monotonic seconds; 0.0 before the first."""

    def relist_begun(self, at: float) -> None:
        if self._relisted_at:
            _RELIST_INTERVAL.observe(at - self._relisted_at)
        self._relisted_at = at

    def relisted(self, took_s: float) -> None:
        _RELIST_DURATION.observe(took_s)

    def observed(self, took_s: float) -> None:
        """A single pod was observed."""
        _POD_DURATION.observe(took_s)

    def iterated(self) -> None:
        """The loop has come round."""
        _LAST_SEEN.set(self._clock.now().wall)
        now, before = self._runtime.counts(), self._counted
        if now != before:
            self._counted = now
            self._row_writer.count(
                runtime_calls=now.calls - before.calls,
                runtime_errors=now.errors - before.errors,
            )
