from __future__ import annotations

from supervisor.managers.token_bucket import TokenBucket


def test_a_burst_then_so_many_a_second() -> None:
    bucket = TokenBucket(per_s=2, burst=3)
    assert [bucket.try_accept(50.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.try_accept(50.5) for _ in range(2)] == [True, False]
    assert [bucket.try_accept(1e6) for _ in range(4)] == [True, True, True, False], "no more than the burst is saved"


def test_zero_is_no_limit() -> None:
    bucket = TokenBucket(per_s=0, burst=1)
    assert all(bucket.try_accept(1.0) for _ in range(100))
