"""When a token is asked for, and when again (pkg/kubelet/token/token_manager.go). Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff

MAX_AGE_S: Final = 24 * 3600.0
"""A token that is older than that is renewed, however long it lives (maxTTL)."""
MAX_JITTER_S: Final = 10.0
RENEWED_AT: Final = 0.8
"""Part of the lifetime after which it is renewed."""
ATTEMPTS: Final = Backoff(0.5, 122.0)
"""Back-off of a volume that cannot be set up (pkg/util/goroutinemap/exponentialbackoff)."""


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token with its dates, in seconds since the epoch. Its repr does not say it."""

    token: str
    expires_at: float
    lifetime_s: float
    """As it was asked for; the server may have made it longer than it says."""

    def __repr__(self) -> str:
        return f"Issued({len(self.token)} characters, until {self.expires_at:.0f})"

    def renew_at(self, jitter_s: float) -> float:
        """When it is asked for anew; `jitter_s` up to MAX_JITTER_S."""
        issued_at = self.expires_at - self.lifetime_s
        by_age = issued_at + MAX_AGE_S - jitter_s
        return min(by_age, issued_at + RENEWED_AT * self.lifetime_s - jitter_s)

    def is_expired(self, now: float) -> bool:
        return now > self.expires_at


class Attempts(msgspec.Struct, frozen=True):
    """Failures in a row."""

    count: int = 0

    @property
    def pause_s(self) -> float:
        """Until the next attempt."""
        return ATTEMPTS.pause_s(self.count + 1)

    def failed(self) -> Attempts:
        return Attempts(self.count + 1)


def expiration(text: str) -> float:
    """Seconds since the epoch of ``status.expirationTimestamp``. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()
