"""When the node worker relists, and when it pings Podman. No I/O; all times are monotonic seconds.

Relists are requested by the master, and come by themselves: rarely while they find nothing new, soon after a change
that may have come without a hint, and after pauses while Podman does not answer.
"""

from __future__ import annotations

import math
import random
from typing import Final

from ipc.link.eventloop.backoff import Backoff
from workers.pleg.relist import relist_period_s

RELIST_JITTER: Final = 0.2
"""The relist period varies by this part of it, so that several agents of one host do not relist at the same time."""
LIVENESS_PERIOD_S: Final = 30.0
"""Longest time without a call of Podman, in seconds, before it is pinged (0.4 ms): one that hangs while nothing happens
is found before it is needed."""
RETRIES: Final = Backoff(0.25, 10.0)
"""Before what failed is tried again."""

CERTAIN: Final = 16
"""So many relists in a row that found nothing new are as good as any number."""

_AT_ONCE: Final = 0.0
_UNDER_WAY: Final = math.inf


class RelistSchedule:
    """Time of the next relist and ping, from events that its methods are called with (no clock of its own)."""

    def __init__(self, shortest_s: float, longest_s: float, rng: random.Random) -> None:
        """The first relist is due at once; from one to the next it is ``shortest_s`` to ``longest_s``, give or take
        RELIST_JITTER. While there is no reason for doubt, one that finds nothing new is enough for the longest."""
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._rng = rng
        self._relist_at = _AT_ONCE
        self._ping_at = _AT_ONCE
        self._was_due = False
        """Whether the newest relist came by itself: a requested one does not count for how quiet it is."""
        self._quiet_relists = 0
        """Number of relists in a row that were due and found nothing new, without a `resync` between them."""
        self._has_answered = False
        """Whether Podman has answered a relist yet."""
        self._has_doubted = False
        """Whether there was a reason for doubt since relists were last as rare as they may be."""
        self._failures = 0
        """Number of relists and pings in a row that Podman did not answer."""

    @property
    def is_down(self) -> bool:
        """Whether Podman did not answer the last call: single pods and pings wait for a relist."""
        return self._failures > 0

    @property
    def next_at(self) -> float:
        """Time of the next relist or ping; infinite while a relist is under way and no other is planned."""
        return self._relist_at if self.is_down else min(self._relist_at, self._ping_at)

    def is_relist_due(self, now: float) -> bool:
        """Whether it is time for a relist."""
        return now >= self._relist_at

    def is_ping_due(self, now: float) -> bool:
        """Whether it is time for a ping."""
        return now >= self._ping_at and not self.is_down

    def request(self) -> None:
        """Relist as soon as possible, after one that is under way; while Podman is down, when the next try is due."""
        if self._relist_at == _UNDER_WAY or not self.is_down:
            self._relist_at = _AT_ONCE

    def resync(self, now: float) -> None:
        """Relist soon and more often: something may have changed without a hint. A relist under way is not enough, and
        the next one is planned when it ends."""
        self._doubt()
        if self._relist_at != _UNDER_WAY:
            self._relist_at = min(self._relist_at, now + self._shortest_s)

    def podman_is_back(self) -> None:
        """Relist at once, if Podman was down until now."""
        if self.is_down:
            self._doubt()
            self._relist_at = _AT_ONCE

    def pinged(self, now: float) -> None:
        """A ping goes out."""
        self._ping_at = now + LIVENESS_PERIOD_S

    def begun(self, now: float) -> None:
        """A relist begins, also when none was due."""
        self._was_due = _AT_ONCE < self._relist_at <= now
        self._relist_at = _UNDER_WAY

    def failed(self, now: float) -> None:
        """Podman did not answer a relist, a ping or an observation."""
        self._failures += 1
        self._doubt()
        self._relist_at = now + RETRIES.pause_s(self._failures)

    def answered(self, now: float) -> None:
        """Podman has answered the relist. `plan` follows when its outcome is known."""
        self._has_answered = True
        self._failures = 0
        self._ping_at = now + LIVENESS_PERIOD_S

    def plan(
        self,
        now: float,
        *,
        started_at: float,
        is_surprise: bool,
        is_settled: bool = True,
        again_in_s: float = math.inf,
    ) -> None:
        """Plan the relist after the one that ``started_at`` and ends now. ``is_surprise``: it found a change without a
        hint; not ``is_settled``: a state that will not last; ``again_in_s``: longest time until the next."""
        if is_surprise:
            self._doubt()
        elif not is_settled:
            self._quiet_relists = 0
        elif self._was_due:
            self._quiet_relists += 1 if self._has_doubted else CERTAIN
            self._has_doubted = self._has_doubted and not self._are_rarest
        period_s = relist_period_s(self._shortest_s, self._longest_s, self._quiet_relists, now - started_at)
        period_s *= self._rng.uniform(1 - RELIST_JITTER, 1 + RELIST_JITTER)
        self._relist_at = min(self._relist_at, started_at + period_s, now + again_in_s)

    @property
    def _are_rarest(self) -> bool:
        """Whether so many have found nothing new that no longer period follows."""
        return relist_period_s(self._shortest_s, self._longest_s, self._quiet_relists, 0.0) >= self._longest_s

    def _doubt(self) -> None:
        """Something may have been missed; nothing before the first relist, while our own service starts and does not
        answer yet."""
        self._has_doubted = self._has_answered
        self._quiet_relists = 0
