"""A token bucket (client-go util/flowcontrol, NewTokenBucketRateLimiter): so many at once, then so many per second."""

from __future__ import annotations

import math


class TokenBucket:
    """Full at the start. Holds no clock: time is an argument."""

    def __init__(self, per_s: float, burst: int) -> None:
        """``per_s`` of 0 is no limit."""
        self._per_s = per_s or math.inf
        self._burst = float(burst)
        self._tokens = self._burst
        self._filled_at = 0.0

    def try_accept(self, now_mono: float) -> bool:
        """Take a token if there is one."""
        if self._per_s == math.inf:
            return True
        self._tokens = min(self._burst, self._tokens + (now_mono - self._filled_at) * self._per_s)
        self._filled_at = now_mono
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
