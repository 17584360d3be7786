"""Due time of each pod's next sync (pkg/kubelet/util/queue/work_queue.go)."""

from __future__ import annotations

import heapq
import random
from typing import Final

from ipc.metrics import kubelet as metrics
from ipc.shm.metric_cells import METERS

_ADDS: Final = METERS.counter(metrics.WORKQUEUE_ADDS, metrics.PODS_QUEUE)
_DEPTH: Final = METERS.counter(metrics.WORKQUEUE_DEPTH, metrics.PODS_QUEUE)
MAX_STALE: Final = 64
"""How many entries of the heap may be out of date when few pods are due."""


def jitter(duration_s: float, factor: float, rng: random.Random) -> float:
    """Uniform in [duration, duration * (1 + factor)) (k8s.io/apimachinery wait.Jitter)."""
    return duration_s * (1.0 + rng.random() * factor)


class WorkQueue:
    """One due time per pod; a later `enqueue` replaces an earlier one."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """Every due time that was enqueued; the ones that were replaced or removed are passed over."""

    def enqueue(self, uid: str, due_mono: float) -> None:
        self._due[uid] = due_mono
        _ADDS.inc()
        _DEPTH.set(len(self._due))
        heapq.heappush(self._heap, (due_mono, uid))
        if len(self._heap) > 2 * len(self._due) + MAX_STALE:
            self._heap = [(at, uid) for uid, at in self._due.items()]
            heapq.heapify(self._heap)

    def due(self, uid: str) -> float | None:
        """When the pod is due, monotonic seconds; None when it is not in the queue."""
        return self._due.get(uid)

    def remove(self, uid: str) -> None:
        self._due.pop(uid, None)
        _DEPTH.set(len(self._due))

    def pop_due(self, now_mono: float) -> list[str]:
        """UIDs of the pods that are due, earliest first; they leave the queue."""
        due = []
        while self._heap and self._heap[0][0] <= now_mono:
            at, uid = heapq.heappop(self._heap)
            if self._due.get(uid) == at:
                del self._due[uid]
                due.append(uid)
        if due:
            _DEPTH.set(len(self._due))
        return due

    def __len__(self) -> int:
        return len(self._due)
