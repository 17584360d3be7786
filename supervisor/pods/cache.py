"""The newest observation of every pod, with its date.

Mirrors the kubelet's pod cache (pkg/kubelet/container/cache.go): an answer counts only when it is newer than the
asker's own last act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from supervisor.pods.parts import CacheEntry, KnownPods


class PodCache:
    """Views of pods, and the time of the last full relist (the *global* timestamp)."""

    def __init__(
        self, known: KnownPods, with_ended: Callable[[RuntimePodStatus], RuntimePodStatus] = lambda status: status
    ) -> None:
        """``with_ended`` gives the observation with the ends that the runtime has forgotten."""
        self._known = known
        self._with_ended = with_ended
        self._relisted_at = 0.0
        self._unseen: frozenset[str] = frozenset()

    @property
    def relisted_at(self) -> float:
        """Start of the newest successful full relist, monotonic seconds; 0.0 before the first."""
        return self._relisted_at

    @property
    def unseen(self) -> frozenset[str]:
        """Pods that were not observed by the newest relist, nor since: all that is known of them is that they exist."""
        return self._unseen

    def set(self, status: RuntimePodStatus, row: int) -> bool:
        """Store a view unless a newer one is there; True when the content changed."""
        parts = self._known.of(status.uid)
        old = parts.view
        if old is not None and old.observed_at > status.observed_at:
            return False
        self._unseen -= {status.uid}
        parts.view, parts.is_view_lost = CacheEntry(status, status.observed_at, row), False
        return old is None or not old.status.same_as(status)

    def invalidate(self, uid: str) -> None:
        """A view of it was lost on its way."""
        self._known.of(uid).is_view_lost = True

    def relisted(self, started_at: float, unseen: Iterable[str] = ()) -> None:
        """A full relist that began then saw every pod there was but these."""
        if started_at >= self._relisted_at:
            self._relisted_at, self._unseen = started_at, frozenset(unseen)

    def get(self, uid: str) -> RuntimePodStatus:
        """The newest view, however old, with the ends that are remembered; when there is none an empty one, as old as
        the newest relist that saw it."""
        seen_at = self._relisted_at if uid not in self._unseen else 0.0
        entry = self.entry(uid)
        return self._with_ended(entry.status if entry is not None else RuntimePodStatus(uid=uid, observed_at=seen_at))

    def entry(self, uid: str) -> CacheEntry | None:
        """The newest view and where it lies, however old."""
        return self._known.find(uid).view

    def newer_than(self, uid: str, mono: float) -> CacheEntry | None:
        """A view observed after that time, or None. What a newer relist says nothing about is as it was, or empty."""
        parts = self._known.find(uid)
        entry = parts.view or CacheEntry(RuntimePodStatus(uid=uid), 0.0, -1)
        seen_at = max(entry.observed_at, self._relisted_at)
        if seen_at <= mono or parts.is_view_lost or uid in self._unseen:
            return None
        return msgspec.structs.replace(entry, observed_at=seen_at)

    def untracked(self) -> dict[str, RuntimePodStatus]:
        """Views of pods that have no record, by UID; of some nothing but logs is left."""
        return {uid: parts.view.status for uid, parts in self._known.untracked() if parts.view is not None}

    def orphans(self) -> list[str]:
        """UIDs of pods in the runtime that have no record."""
        return sorted(uid for uid, status in self.untracked().items() if not status.is_empty())

    def statuses(self) -> dict[str, RuntimePodStatus]:
        """The newest view of every pod that there is one of."""
        return {uid: parts.view.status for uid, parts in self._known.items() if parts.view is not None}

    def delete(self, uid: str) -> None:
        """Nothing is left of a pod that has no record."""
        self._known.of(uid).view = None
        self._known.tidy(uid)
