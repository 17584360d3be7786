"""Pods of which the node worker still reads something that they refer to, as it said last."""

from __future__ import annotations


class IncompletePods:
    """Set of UIDs."""

    def __init__(self) -> None:
        self._uids: frozenset[str] = frozenset()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def tell(self, uids: frozenset[str]) -> list[str]:
        """Take the UIDs of all that there are now. Returns those that have become complete, in order."""
        complete, self._uids = self._uids - uids, uids
        return sorted(complete)
