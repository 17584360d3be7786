"""Queue of requested observations of single pods. No I/O; all times are monotonic seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from workers.pleg.relist_schedule import RETRIES

SAME_AGAIN_S: Final = 60.0
"""The same error of a pod is news again after that (pkg/kubelet/kuberuntime/kuberuntime_manager.go,
identicalErrorDelay), in seconds."""


class Failure(NamedTuple):
    """Failed observations of a pod in a row."""

    times: int
    is_news: bool
    """Whether the error is to be said: another one than before, or one that was not said for `SAME_AGAIN_S`."""


class _Failed(NamedTuple):
    times: int
    why: str
    said_at: float


class ObserveQueue:
    """Pods to observe, each with its time. Bounded by the pods that the master tracks and those that Podman has."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        """Time at which each pod is to be observed. Oldest request first."""
        self._failures: dict[str, _Failed] = {}
        """By pod."""

    @property
    def next_at(self) -> float:
        """Time at which the first of them is due; infinite when the queue is empty."""
        return min(self._due.values(), default=math.inf)

    def request(self, uid: str, at: float = 0.0) -> None:
        """Observe that pod at ``at`` at the latest; 0 is at once."""
        self._due[uid] = min(at, self._due.get(uid, at))

    def request_again(self, uids: Iterable[str]) -> None:
        """Put back pods that were taken and not observed: due at once, unless they were requested for another time
        since."""
        for uid in uids:
            self._due.setdefault(uid, 0.0)

    def due(self, now: float) -> list[str]:
        """Pods that are due, oldest request first. They stay in the queue until they are taken."""
        return [uid for uid, at in self._due.items() if at <= now]

    def take(self, uids: Iterable[str]) -> None:
        """Remove pods whose observation begins: a request from now on is for another one."""
        for uid in uids:
            del self._due[uid]

    def drop(self, uid: str) -> None:
        """Nobody wants that pod to be observed any more."""
        self._due.pop(uid, None)
        self._failures.pop(uid, None)

    def take_all(self) -> tuple[str, ...]:
        """Remove and return all pods, due or not."""
        waiting = tuple(self._due)
        self._due.clear()
        return waiting

    def is_requested(self, uid: str) -> bool:
        """Whether that pod is to be observed, now or later."""
        return uid in self._due

    def failed(self, uid: str, why: str, now: float) -> Failure:
        """Note a failed observation. The pod is due again after a delay, unless it was requested anew."""
        last = self._failures.get(uid)
        times = last.times + 1 if last is not None else 1
        is_news = last is None or last.why != why or now - last.said_at >= SAME_AGAIN_S
        said_at = now if last is None or is_news else last.said_at
        self._failures[uid] = _Failed(times, why, said_at)
        self._due.setdefault(uid, now + RETRIES.pause_s(times))
        return Failure(times, is_news)

    def failures(self, uid: str) -> int:
        """Failed observations of that pod in a row."""
        last = self._failures.get(uid)
        return last.times if last is not None else 0

    def observed(self, uid: str) -> None:
        """The pod was observed."""
        self._failures.pop(uid, None)

    def retry_delay_s(self, uids: Iterable[str]) -> float:
        """Seconds from the last failure until all of these pods are due again; infinite when there are none."""
        return max((RETRIES.pause_s(self.failures(uid) or 1) for uid in uids), default=math.inf)
