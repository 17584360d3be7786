"""Quiet pods: nothing has happened to them for a while, so that they cost their worker a sync now and then."""

from __future__ import annotations

from collections.abc import Set


class QuietPods:
    """Dates of what has happened last to each pod, to the tick. A pod that was never stirred is quiet."""

    def __init__(self) -> None:
        self._stirred: set[str] = set()
        """Since the last tick."""
        self._quiet_at: dict[str, float] = {}
        """When the others become quiet (monotonic), earliest first; a pod of both is not."""

    def stir(self, uid: str) -> None:
        """Note that something happens to the pod."""
        self._stirred.add(uid)

    def is_quiet(self, uid: str) -> bool:
        return uid not in self._stirred and uid not in self._quiet_at

    def forget(self, uid: str) -> None:
        """Drop a pod that is no longer there."""
        self._stirred.discard(uid)
        self._quiet_at.pop(uid, None)

    def tick(self, now_mono: float, quiet_after_s: float) -> Set[str]:
        """UIDs of the pods that have become quiet: nothing has happened to them for so long."""
        for uid in sorted(self._stirred):
            self._quiet_at.pop(uid, None)  # it goes to the end
            self._quiet_at[uid] = now_mono + quiet_after_s
        self._stirred.clear()
        quiet = set()
        for uid, at in self._quiet_at.items():
            if at > now_mono:
                break
            quiet.add(uid)
        for uid in quiet:
            del self._quiet_at[uid]
        return quiet
