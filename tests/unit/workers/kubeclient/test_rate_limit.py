"""The token bucket of requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kubeclient.rate_limit import RateLimit, TokenBucket


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(50.0, 100, 0.0)
    assert [bucket.take(0.0) for _ in range(100)] == [0.0] * 100
    assert [bucket.take(0.0) for _ in range(3)] == pytest.approx([0.02, 0.04, 0.06])
    assert bucket.take(1.0) == 0.0


def test_tokens_are_no_more_than_the_burst_after_a_long_time() -> None:
    bucket = TokenBucket(50.0, 2, 0.0)
    assert [bucket.take(3600.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.02])


def test_no_limit_without_a_rate() -> None:
    bucket = TokenBucket(0.0, 1, 0.0)
    assert [bucket.take(0.0) for _ in range(1000)] == [0.0] * 1000


@given(
    st.floats(0.5, 1000.0),
    st.integers(1, 200),
    st.lists(st.floats(0.0, 5.0), min_size=1, max_size=60),
)
def test_no_more_than_burst_and_rate_allow(qps: float, burst: int, pauses: list[float]) -> None:
    """In any window from the start."""
    bucket, now, used = TokenBucket(qps, burst, 0.0), 0.0, []
    for pause in pauses:
        now += pause
        used.append(now + bucket.take(now))
    for number, at in enumerate(sorted(used), start=1):
        assert number <= burst + at * qps + 1e-3


async def test_who_would_wait_beyond_the_deadline_is_told_at_once_and_takes_nothing() -> None:
    limit = RateLimit(0.001, 1)
    assert await limit.wait(float("inf")) == 0.0
    for _ in range(3):
        with pytest.raises(TimeoutError, match="would exceed"):
            await limit.wait(0.0)
    assert limit._bucket.take(10.0**9) == 0.0
