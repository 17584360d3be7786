"""Due time of each pod's next sync (pkg/kubelet/util/queue/work_queue.go)."""

from __future__ import annotations

import random


def jitter(duration_s: float, factor: float, rng: random.Random) -> float:
    """Uniform in [duration, duration * (1 + factor)) (k8s.io/apimachinery wait.Jitter)."""
    return duration_s * (1.0 + rng.random() * factor)


class WorkQueue:
    """One due time per pod; a later `enqueue` replaces an earlier one."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}

    def enqueue(self, uid: str, due_mono: float) -> None:
        self._due[uid] = due_mono

    def remove(self, uid: str) -> None:
        self._due.pop(uid, None)

    def pop_due(self, now_mono: float) -> list[str]:
        """UIDs of the pods that are due, earliest first; they leave the queue."""
        due = sorted((at, uid) for uid, at in self._due.items() if at <= now_mono)
        for _, uid in due:
            del self._due[uid]
        return [uid for _, uid in due]

    def __len__(self) -> int:
        return len(self._due)
