"""The newest observation of every pod, with its date.

Mirrors the kubelet's pod cache (pkg/kubelet/container/cache.go): an answer counts only when it is newer than the
asker's own last act.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus


class CacheEntry(msgspec.Struct, frozen=True):
    status: RuntimePodStatus
    observed_at: float
    """Monotonic seconds."""
    row: int
    """The board row that holds the same content; -1 when it did not fit."""


class PodCache:
    """Entries by pod UID, and the time of the last full relist (the *global* timestamp)."""

    def __init__(self, with_ended: Callable[[RuntimePodStatus], RuntimePodStatus] = lambda status: status) -> None:
        """``with_ended`` gives the observation with the ends that the runtime has forgotten."""
        self._with_ended = with_ended
        self._entries: dict[str, CacheEntry] = {}
        self._invalid: set[str] = set()
        self._rowless: set[str] = set()
        """UIDs of the pods whose view came without a row: every orphan is among them."""
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
        old = self._entries.get(status.uid)
        if old is not None and old.observed_at > status.observed_at:
            return False
        self._invalid.discard(status.uid)
        self._unseen -= {status.uid}
        self._entries[status.uid] = CacheEntry(status, status.observed_at, row)
        (self._rowless.add if row < 0 else self._rowless.discard)(status.uid)
        return old is None or not old.status.same_as(status)

    def invalidate(self, uid: str) -> None:
        """A view of it was lost on its way: nothing is certain until the next one, whatever a relist says."""
        self._invalid.add(uid)

    def relisted(self, started_at: float, unseen: Iterable[str] = ()) -> None:
        """A full relist that began then saw every pod there was but these."""
        if started_at >= self._relisted_at:
            self._relisted_at, self._unseen = started_at, frozenset(unseen)

    def get(self, uid: str) -> RuntimePodStatus:
        """The newest view, however old, with the ends that are remembered; when there is none an empty one, as old as
        the newest relist that saw it."""
        seen_at = self._relisted_at if uid not in self._unseen else 0.0
        entry = self._entries.get(uid)
        return self._with_ended(entry.status if entry is not None else RuntimePodStatus(uid=uid, observed_at=seen_at))

    def entry(self, uid: str) -> CacheEntry | None:
        """The newest view and where it lies, however old."""
        return self._entries.get(uid)

    def newer_than(self, uid: str, mono: float) -> CacheEntry | None:
        """A view observed after that time, or None. What a newer relist says nothing about is as it was, or empty."""
        entry = self._entries.get(uid) or CacheEntry(RuntimePodStatus(uid=uid), 0.0, -1)
        seen_at = max(entry.observed_at, self._relisted_at)
        if seen_at <= mono or uid in self._invalid or uid in self._unseen:
            return None
        return msgspec.structs.replace(entry, observed_at=seen_at)

    def unknown(self, known: Container[str]) -> list[str]:
        """Pods that are not among the known ones and of which there is a view; of some nothing but logs is left."""
        return sorted(uid for uid in self._rowless if uid not in known)

    def orphans(self, known: Container[str]) -> list[str]:
        """Pods in the runtime that are not among the known ones."""
        return [uid for uid in self.unknown(known) if not self._entries[uid].status.is_empty()]

    def statuses(self) -> dict[str, RuntimePodStatus]:
        """The newest view of every pod that there is one of."""
        return {uid: entry.status for uid, entry in self._entries.items()}

    def delete(self, uid: str) -> None:
        self._entries.pop(uid, None)
        self._invalid.discard(uid)
        self._rowless.discard(uid)
