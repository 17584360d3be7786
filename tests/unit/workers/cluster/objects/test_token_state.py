"""When tokens are renewed (pkg/kubelet/token/token_manager_test.go, TestRequiresRefresh)."""

from __future__ import annotations

import pytest

from workers.cluster.objects.token_state import Attempts, Issued, expiration

HOUR_S = 3600.0


def issued(lifetime_s: float, at: float = 1_000_000.0) -> Issued:
    return Issued(token="secret", expires_at=at + lifetime_s, lifetime_s=lifetime_s)


@pytest.mark.parametrize(
    ("lifetime_s", "renewed_after_s"),
    [(600.0, 480.0), (HOUR_S, 2880.0), (24 * HOUR_S, 0.8 * 24 * HOUR_S), (48 * HOUR_S, 24 * HOUR_S)],
)
def test_renewed_at_80_percent_or_after_a_day(lifetime_s: float, renewed_after_s: float) -> None:
    token = issued(lifetime_s)
    assert token.renew_at(0.0) == pytest.approx(1_000_000.0 + renewed_after_s)
    assert token.renew_at(10.0) == pytest.approx(1_000_000.0 + renewed_after_s - 10.0)


def test_expired_after_its_end() -> None:
    token = issued(600.0)
    assert not token.is_expired(1_000_600.0)
    assert token.is_expired(1_000_600.1)


def test_repr_does_not_say_it() -> None:
    assert "secret" not in repr(issued(600.0))


def test_pauses_double() -> None:
    attempts, pauses = Attempts(), []
    for _ in range(10):
        pauses.append(attempts.pause_s)
        attempts = attempts.failed()
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0]


def test_expiration() -> None:
    assert expiration("1970-01-01T00:10:00Z") == 600.0
    with pytest.raises(ValueError, match="no time zone"):
        expiration("1970-01-01T00:10:00")
