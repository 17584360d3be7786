"""CPU use as a rate."""

from __future__ import annotations

from workers.stats.rates import MIN_S, Rates
from workers.statsapi.values import Cpu, Source


def at(rates: Rates, mono: float, usage_ns: int | None) -> int | None:
    found = rates.with_rate("x", Cpu(source=Source.CGROUP, time=mono, usage_ns=usage_ns), mono)
    rates.round_over()
    return found.nano_cores


def test_one_sample_is_no_rate() -> None:
    assert at(Rates(), 1.0, 5) is None


def test_a_rate() -> None:
    rates = Rates()
    at(rates, 10.0, 1_000_000_000)
    assert at(rates, 20.0, 6_000_000_000) == 500_000_000


def test_two_samples_in_the_same_moment_have_the_rate_before() -> None:
    rates = Rates()
    at(rates, 10.0, 0)
    at(rates, 20.0, 10)
    assert at(rates, 20.0 + MIN_S / 2, 1_000_000) == 1
    assert at(rates, 30.0, 1_000_010) == 100_000


def test_what_is_not_known_has_no_rate() -> None:
    rates = Rates()
    at(rates, 1.0, 5)
    assert at(rates, 9.0, None) is None


def test_after_a_round_without_it_a_rate_begins_anew() -> None:
    rates = Rates()
    at(rates, 1.0, 5)
    rates.round_over()
    assert at(rates, 9.0, 50) is None
