"""Back-off of failed image pulls, per pod and image, without any state between two syncs.

A sync brings what is remembered (``SyncPod.pull_failures``) and takes away what is to be remembered
(``SyncDone.pull_failures``); the master keeps it as long as the pod lives. Mirrors flowcontrol.Backoff as the image
manager uses it (pkg/kubelet/images/image_manager.go). Different on purpose: a pull that succeeds ends the back-off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipc.messages.pod_worker import PullFailure
from workers.compute.crash_loop_backoff import BackoffEntry, BackoffLimits, has_expired, in_backoff, next_backoff_s

PULL_BACKOFF: Final = BackoffLimits(initial_s=10.0, max_s=300.0, expires_after_s=600.0)
"""pkg/kubelet/kubelet.go (imageBackOffPeriod, MaxImageBackOff); client-go forgets after twice the maximum."""
MAX_FAILURES: Final = 64
"""Images of one pod whose failures are remembered; of more, the newest."""

MAX_MESSAGE_CHARS: Final = 4096
"""Longest reason that is remembered, in characters: it travels with every sync."""


class PullBackoff:
    """Of one pod, for one sync."""

    def __init__(self, uid: str, failures: Iterable[PullFailure] = (), limits: BackoffLimits = PULL_BACKOFF) -> None:
        self.uid = uid
        self._limits = limits
        self._failures = {failure.image: failure for failure in failures}

    def waits_for(self, image: str, now_wall: float) -> tuple[PullFailure, float] | None:
        """Why the image is not to be pulled now, and the wall time from which on it may be (IsInBackOffSinceUpdate)."""
        failure = self._failures.get(image)
        if failure is None or has_expired(_entry(failure), now_wall, self._limits):
            return None
        if not in_backoff(_entry(failure), failure.updated_at, now_wall, self._limits):
            return None
        return failure, failure.updated_at + failure.backoff_s

    def failed(self, image: str, message: str, now_wall: float) -> float:
        """A pull has failed; the wall time before which trying again is useless (Backoff.Next)."""
        known = self._failures.pop(image, None)
        backoff_s = next_backoff_s(_entry(known) if known else None, now_wall, self._limits)
        self._failures[image] = PullFailure(
            image=image, backoff_s=backoff_s, updated_at=now_wall, message=message[:MAX_MESSAGE_CHARS]
        )
        return now_wall + backoff_s

    def succeeded(self, image: str) -> None:
        self._failures.pop(image, None)

    def remembered(self, now_wall: float) -> tuple[PullFailure, ...]:
        """What the next sync has to know (Backoff.GC), oldest first."""
        alive = [f for f in self._failures.values() if not has_expired(_entry(f), now_wall, self._limits)]
        return tuple(alive[-MAX_FAILURES:])


def _entry(failure: PullFailure) -> BackoffEntry:
    return BackoffEntry(backoff_s=failure.backoff_s, updated_at=failure.updated_at)
