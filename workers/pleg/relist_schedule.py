"""When Podman is asked for everything, and when for a sign of life. No I/O; all times are monotonic seconds.

Relists are asked for by the master, and come by themselves: rarely while they find nothing new, soon after
anything that may have happened without a word, and after pauses while Podman does not answer.
"""

from __future__ import annotations

import math
import random
from typing import Final

from workers.pleg.relist import relist_period_s

RELIST_JITTER: Final = 0.2
"""The relist period varies by this part of it, so that several agents of one host do not march in step."""
LIVENESS_PERIOD_S: Final = 30.0
"""Longest time without a call of Podman, in seconds, before it is pinged (0.4 ms): one that hangs while nothing happens
is missed before somebody needs it."""
RETRY_INITIAL_S: Final = 0.25
"""Delay before what failed is tried again, in seconds; it doubles."""
RETRY_MAX_S: Final = 10.0
"""Longest such delay, in seconds."""

_AT_ONCE: Final = 0.0
_UNDER_WAY: Final = math.inf


def retry_delay_s(failures: int) -> float:
    """Seconds until the next try after so many failures in a row (1 or more)."""
    return min(RETRY_INITIAL_S * 2.0 ** min(failures - 1, 16), RETRY_MAX_S)


class RelistSchedule:
    """From one relist to the next. What happens, and when, is told to it."""

    def __init__(self, shortest_s: float, longest_s: float, rng: random.Random) -> None:
        """The first relist is due at once; from one to the next it is ``shortest_s`` to ``longest_s``, give or take
        RELIST_JITTER."""
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._rng = rng
        self._relist_at = _AT_ONCE
        self._ping_at = _AT_ONCE
        self._was_due = False
        """Whether the newest relist came by itself: one that was asked for says nothing of how quiet it is."""
        self._quiet_relists = 0
        """How many in a row that were due found nothing new, and nobody had a reason to doubt."""
        self._failures = 0
        """How often in a row Podman did not answer a relist, or a ping."""

    @property
    def is_down(self) -> bool:
        """Whether Podman did not answer when it was last asked: single pods and pings wait for a relist."""
        return self._failures > 0

    @property
    def next_at(self) -> float:
        """When there is something to do next; infinite while a relist is under way that nothing follows yet."""
        return self._relist_at if self.is_down else min(self._relist_at, self._ping_at)

    def is_relist_due(self, now: float) -> bool:
        """Whether it is time for everything."""
        return now >= self._relist_at

    def is_ping_due(self, now: float) -> bool:
        """Whether it is time for a sign of life."""
        return now >= self._ping_at and not self.is_down

    def ask(self) -> None:
        """As soon as possible, after one that is under way; while Podman is down, when the next try is due."""
        if self._relist_at == _UNDER_WAY or not self.is_down:
            self._relist_at = _AT_ONCE

    def doubt(self, now: float) -> None:
        """Something may have happened without a word: soon, and more often. One under way is not the one that is
        meant, and the next is planned when it ends."""
        self._quiet_relists = 0
        if self._relist_at != _UNDER_WAY:
            self._relist_at = min(self._relist_at, now + self._shortest_s)

    def podman_is_back(self) -> None:
        """It was found to answer again: nobody waits for the next try. Nothing new for who did not miss it."""
        if self.is_down:
            self._quiet_relists = 0
            self._relist_at = _AT_ONCE

    def pinged(self, now: float) -> None:
        """A ping goes out."""
        self._ping_at = now + LIVENESS_PERIOD_S

    def begun(self, now: float) -> None:
        """A relist is under way, also if it was not time for one."""
        self._was_due = _AT_ONCE < self._relist_at <= now
        self._relist_at = _UNDER_WAY

    def failed(self, now: float) -> None:
        """A relist, a ping or a look has found that Podman does not answer."""
        self._failures += 1
        self._quiet_relists = 0
        self._relist_at = now + retry_delay_s(self._failures)

    def answered(self, now: float) -> None:
        """The relist has its answer. `plan` follows when it is known what that says."""
        self._failures = 0
        self._ping_at = now + LIVENESS_PERIOD_S

    def plan(self, now: float, *, started_at: float, is_surprise: bool, again_in_s: float = math.inf) -> None:
        """The relist after the one that ``started_at`` and ends now. ``is_surprise``: it found what nobody knew, or
        what may not be the last word; ``again_in_s``: so soon at the latest."""
        if is_surprise:
            self._quiet_relists = 0
        elif self._was_due:
            self._quiet_relists += 1
        period_s = relist_period_s(self._shortest_s, self._longest_s, self._quiet_relists, now - started_at)
        period_s *= self._rng.uniform(1 - RELIST_JITTER, 1 + RELIST_JITTER)
        self._relist_at = min(self._relist_at, started_at + period_s, now + again_in_s)
