"""Removals that wait: nothing is deleted on partial knowledge, of what is wanted or of what runs."""

from __future__ import annotations


class Removals:
    """REMOVEs until every source was read once and one full relist has succeeded."""

    def __init__(self) -> None:
        self._are_sources_ready = False
        self._waiting: dict[str, int | None] = {}
        """UID -> grace period that came with it, in seconds."""

    @property
    def are_sources_ready(self) -> bool:
        """Every configured source was read completely once."""
        return self._are_sources_ready

    def sources_ready(self) -> None:
        """Every configured source was read completely once."""
        self._are_sources_ready = True

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def add(self, uid: str, grace_period_s: int | None) -> None:
        """Have a pod removed as soon as enough is known; another grace period replaces the one before."""
        self._waiting[uid] = grace_period_s

    def withdraw(self, uid: str) -> None:
        """The pod is wanted after all."""
        self._waiting.pop(uid, None)

    def take_due(self, relisted_at: float) -> dict[str, int | None]:
        """Removals to carry out now, with their grace periods; they do not wait any more."""
        if not (self._are_sources_ready and relisted_at):
            return {}
        due, self._waiting = self._waiting, {}
        return due
