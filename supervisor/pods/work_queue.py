"""Due time of each pod's next sync (pkg/kubelet/util/queue/work_queue.go)."""

from __future__ import annotations

import heapq
import random
from typing import Final

from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.pods.parts import KnownPods, PodParts

_ADDS: Final = METERS.counter(metrics.WORKQUEUE_ADDS, metrics.PODS_QUEUE)
_DEPTH: Final = METERS.counter(metrics.WORKQUEUE_DEPTH, metrics.PODS_QUEUE)
MAX_STALE: Final = 64
"""How many entries of the heap may be out of date when few pods are due."""


def jitter(duration_s: float, factor: float, rng: random.Random) -> float:
    """Uniform in [duration, duration * (1 + factor)) (k8s.io/apimachinery wait.Jitter)."""
    return duration_s * (1.0 + rng.random() * factor)


class WorkQueue:
    """One due time per pod; a later `enqueue` replaces an earlier one."""

    def __init__(self, known: KnownPods) -> None:
        self._known = known
        self._heap: list[tuple[float, str]] = []
        """Every due time that was enqueued; the ones that were replaced or removed are passed over."""
        self._depth = 0
        """How many pods have a due time."""
        known.on_forget(self._forgotten)

    def enqueue(self, uid: str, due_mono: float) -> None:
        parts = self._known.of(uid)
        self._set_depth(self._depth + (parts.next_sync_at is None))
        parts.next_sync_at = due_mono
        _ADDS.inc()
        heapq.heappush(self._heap, (due_mono, uid))
        if len(self._heap) > 2 * self._depth + MAX_STALE:
            self._heap = [entry for entry in set(self._heap) if self._is_due(*entry)]
            heapq.heapify(self._heap)

    def _is_due(self, at: float, uid: str) -> bool:
        return self._known.find(uid).next_sync_at == at

    def _forgotten(self, uid: str, parts: PodParts) -> None:
        self._set_depth(self._depth - (parts.next_sync_at is not None))

    def _set_depth(self, depth: int) -> None:
        self._depth = depth
        _DEPTH.set(depth)

    def pop_due(self, now_mono: float) -> list[str]:
        """UIDs of the pods that are due, earliest first; they leave the queue."""
        due = []
        while self._heap and self._heap[0][0] <= now_mono:
            at, uid = heapq.heappop(self._heap)
            if self._is_due(at, uid):
                self._known.of(uid).next_sync_at = None
                due.append(uid)
        if due:
            self._set_depth(self._depth - len(due))
        return due
