"""Pauses that double."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipc.link.eventloop.backoff import Backoff

RETRIES = Backoff(0.25, 10.0)


def test_pauses_double_up_to_the_longest() -> None:
    assert [RETRIES.pause_s(failures) for failures in (0, 1, 2, 3, 6, 7)] == [0.25, 0.25, 0.5, 1.0, 8.0, 10.0]


@given(st.integers(-(10**30), 10**30))
def test_any_number_of_failures_has_a_pause(failures: int) -> None:
    assert RETRIES.initial_s <= RETRIES.pause_s(failures) <= RETRIES.max_s


def test_a_longest_pause_below_the_shortest_is_the_longest() -> None:
    assert Backoff(5.0, 1.0).pause_s(1) == 1.0
