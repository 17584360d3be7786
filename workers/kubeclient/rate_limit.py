"""Rate limit of requests: a token bucket, as client-go's flowcontrol has it."""

from __future__ import annotations

import asyncio

from ipc.link.eventloop.loop_clock import loop_time


class TokenBucket:
    """``qps`` tokens a second, ``burst`` at most. A waiter takes its token at once and waits until it is due, so that
    waiters go on in their order (golang.org/x/time/rate, Reserve). Pure: times in seconds of one monotonic clock."""

    def __init__(self, qps: float, burst: int, now: float) -> None:
        """Begins full. Without a limit where ``qps`` is not above 0."""
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take a token; the seconds until it may be used."""
        if self._qps <= 0:
            return 0.0
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._qps)
        self._at = max(now, self._at)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """A token that was taken and will not be used."""
        self._tokens = min(self._burst, self._tokens + 1.0)


class RateLimit:
    """A bucket on the event loop's clock."""

    def __init__(self, qps: float, burst: int) -> None:
        """``qps``: kubeAPIQPS, ``burst``: kubeAPIBurst; no limit where ``qps`` is not above 0."""
        self._bucket = TokenBucket(qps, burst, loop_time())

    def change(self, qps: float, burst: int) -> None:
        """Other limits from now on; the new bucket begins full."""
        self._bucket = TokenBucket(qps, burst, loop_time())

    async def wait(self, until: float) -> float:
        """Seconds that the caller has waited for its turn. Raises TimeoutError at once when that would come after
        ``until``, in seconds of the loop's clock."""
        now = loop_time()
        wait_s = self._bucket.take(now)
        if now + wait_s > until:
            self._bucket.give_back()
            raise TimeoutError("client rate limiter: would exceed the deadline")
        if wait_s:
            try:
                await asyncio.sleep(wait_s)
            except asyncio.CancelledError:
                self._bucket.give_back()
                raise
        return wait_s
