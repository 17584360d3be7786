"""Pauses that double: one arithmetic, and each user's own numbers. Pure.

Mirrors client-go util/flowcontrol, backoff.go. What upstream keeps by key in a map, the caller keeps: a number of
failures, or an entry.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

MAX_DOUBLINGS: Final = 32
"""More than lie between any two pauses."""


class BackoffEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The pause in seconds that is served, and the wall time at which it was decided."""

    backoff_s: float
    updated_at: float


class Backoff(msgspec.Struct, frozen=True):
    """The shortest and the longest pause, in seconds, and how long after an entry's time the next one begins anew."""

    initial_s: float
    max_s: float
    expires_after_s: float = math.inf

    def pause_s(self, failures: int) -> float:
        """Pause after so many failures in a row; the first one and none have the shortest."""
        return min(self.initial_s * 2.0 ** min(max(failures - 1, 0), MAX_DOUBLINGS), self.max_s)

    def next_s(self, entry: BackoffEntry | None, event_at: float) -> float:
        """Pause after an event at that wall time (Backoff.Next)."""
        if entry is None or self.has_expired(entry, event_at):
            return self.initial_s
        return min(entry.backoff_s * 2, self.max_s)

    def has_expired(self, entry: BackoffEntry, event_at: float) -> bool:
        """Whether the event came so long after the entry was written that the entry no longer counts."""
        return event_at - entry.updated_at > self.expires_after_s

    def must_wait(self, entry: BackoffEntry, event_at: float, now_wall: float) -> bool:
        """Whether the entry's pause since the event is not over (Backoff.IsInBackOffSince).

        An event that lies further ahead than the pause is long says that the clock was set back: how long ago it was is
        unknown, and waiting for that time could take hours. So a jump makes a wait twice as long at the most.
        """
        return not self.has_expired(entry, event_at) and abs(now_wall - event_at) < entry.backoff_s
