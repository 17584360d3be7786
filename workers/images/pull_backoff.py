"""Back-off of failed image pulls, per pod and image, without any state between two syncs.

The entries come with a sync (``SyncPod.pull_failures``) and leave with its answer (``SyncDone.pull_failures``); the
master keeps them as long as the pod lives. Mirrors flowcontrol.Backoff as the image
manager uses it (pkg/kubelet/images/image_manager.go). Different on purpose: a pull that succeeds ends the back-off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipc.link.eventloop.backoff import Backoff, BackoffEntry
from ipc.link.messages.pod_worker import PullFailure
from ipc.link.messages.sync_error import SyncError

PULL_BACKOFF: Final = Backoff(initial_s=10.0, max_s=300.0, expires_after_s=600.0)
"""pkg/kubelet/kubelet.go (imageBackOffPeriod, MaxImageBackOff); client-go forgets after twice the maximum."""
MAX_FAILURES: Final = 64
"""Most images of one pod whose failures are kept: the newest."""

MAX_MESSAGE_CHARS: Final = 4096
"""Longest reason that is kept, in characters: it travels with every sync."""


class PullBackoff:
    """Back-off entries of one pod, in one sync."""

    def __init__(self, uid: str, failures: Iterable[PullFailure] = (), limits: Backoff = PULL_BACKOFF) -> None:
        self.uid = uid
        self._limits = limits
        self._failures = {failure.image: failure for failure in failures}

    def waits_for(self, image: str, now_wall: float) -> tuple[PullFailure, float] | None:
        """The failure for which the image is not pulled now, and the wall time of the next try
        (IsInBackOffSinceUpdate)."""
        failure = self._failures.get(image)
        if failure is None or self._limits.has_expired(_entry(failure), now_wall):
            return None
        if not self._limits.must_wait(_entry(failure), failure.updated_at, now_wall):
            return None
        return failure, failure.updated_at + failure.backoff_s

    def failed(self, image: str, reason: SyncError, message: str, now_wall: float) -> float:
        """Note a failed pull; the wall time of the next try (Backoff.Next)."""
        known = self._failures.pop(image, None)
        backoff_s = self._limits.next_s(_entry(known) if known else None, now_wall)
        self._failures[image] = PullFailure(
            image=image,
            backoff_s=backoff_s,
            updated_at=now_wall,
            message=message[:MAX_MESSAGE_CHARS],
            reason=reason,
        )
        return now_wall + backoff_s

    def succeeded(self, image: str) -> None:
        self._failures.pop(image, None)

    def remembered(self, now_wall: float) -> tuple[PullFailure, ...]:
        """Entries for the next sync, oldest first (Backoff.GC)."""
        alive = [f for f in self._failures.values() if not self._limits.has_expired(_entry(f), now_wall)]
        return tuple(alive[-MAX_FAILURES:])


def _entry(failure: PullFailure) -> BackoffEntry:
    return BackoffEntry(backoff_s=failure.backoff_s, updated_at=failure.updated_at)
