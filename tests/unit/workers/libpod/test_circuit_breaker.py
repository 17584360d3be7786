"""The circuit breaker as a machine: what is told to it, and what it lets through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipc.link.shm.breaker_state import BreakerState
from workers.libpod.circuit_breaker import MAX_FAILURES, Breaker


def opened() -> Breaker:
    breaker = Breaker()
    for _ in range(MAX_FAILURES):
        assert breaker.admit()
        breaker.failed("gone", late=False)
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breaker = Breaker()
    for _ in range(MAX_FAILURES - 1):
        breaker.failed("late", late=True)
    breaker.answered()
    for _ in range(MAX_FAILURES - 1):
        breaker.failed("late", late=True)
        breaker.ping_answered()
        assert breaker.admit()
    breaker.failed("later", late=True)
    assert (breaker.state, breaker.why, breaker.admit()) == (BreakerState.OPEN, "later", False)


def test_pings_count_as_calls_do() -> None:
    breaker = Breaker()
    for _ in range(MAX_FAILURES):
        breaker.ping_failed("late")
    assert (breaker.state, breaker.pings_lost) == (BreakerState.OPEN, MAX_FAILURES)


def test_a_ping_half_opens_it_for_one_call_and_that_closes_it() -> None:
    breaker = opened()
    breaker.ping_answered()
    assert breaker.state is BreakerState.HALF_OPEN
    assert [breaker.admit(), breaker.admit()] == [True, False]
    breaker.ping_answered()
    assert breaker.state is BreakerState.HALF_OPEN, "the trial decides"
    breaker.answered()
    assert (breaker.state, breaker.admit(), breaker.admit()) == (BreakerState.CLOSED, True, True)
    assert not breaker.needs_pings


def test_a_failed_trial_opens_it_at_once() -> None:
    breaker = opened()
    breaker.ping_answered()
    assert breaker.admit()
    breaker.failed("again", late=True)
    assert (breaker.state, breaker.admit()) == (BreakerState.OPEN, False)


def test_an_abandoned_trial_makes_room_for_another() -> None:
    breaker = opened()
    breaker.ping_answered()
    assert breaker.admit()
    breaker.abandoned()
    assert breaker.admit()


def test_without_any_call_a_second_ping_closes_it() -> None:
    breaker = opened()
    breaker.ping_answered()
    breaker.ping_answered()
    assert breaker.state is BreakerState.CLOSED


def test_calls_that_hang_while_pings_are_answered_are_tried_one_at_a_time() -> None:
    """A lock of Podman's that never comes free: only a call can tell that it has."""
    breaker = Breaker()
    for _ in range(MAX_FAILURES):
        breaker.failed("late", late=True)
        breaker.ping_answered()
    for _ in range(5):
        breaker.ping_answered()
    assert (breaker.state, breaker.needs_pings) == (BreakerState.HALF_OPEN, False)
    assert [breaker.admit(), breaker.admit()] == [True, False]
    breaker.failed("late", late=True)
    assert (breaker.state, breaker.needs_pings) == (BreakerState.OPEN, True)
    breaker.ping_answered()
    assert breaker.admit()
    breaker.answered()
    assert breaker.state is BreakerState.CLOSED


def test_a_lost_ping_opens_a_half_open_one() -> None:
    breaker = opened()
    breaker.ping_answered()
    breaker.ping_failed("gone")
    assert breaker.state is BreakerState.OPEN


def test_pauses_grow_up_to_a_maximum_and_begin_anew() -> None:
    breaker, pauses = Breaker(), []
    for _ in range(8):
        breaker.ping_failed("late")
        pauses.append(breaker.pause_s)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    breaker.ping_answered()
    assert breaker.pause_s == 0.25


@given(st.lists(st.sampled_from(["late", "refused", "call", "leave", "ping", "no ping"])))
def test_two_answered_pings_let_a_call_through_and_that_closes_it_whatever_was_before(history: list[str]) -> None:
    breaker = Breaker()
    for what in history:
        admitted = breaker.admit() if what in ("call", "late", "refused", "leave") else False
        if what == "call" and admitted:
            breaker.answered()
        elif what in ("late", "refused") and admitted:
            breaker.failed("x", late=what == "late")
        elif what == "leave" and admitted:
            breaker.abandoned()
        elif what == "ping":
            breaker.ping_answered()
        elif what == "no ping":
            breaker.ping_failed("x")
        assert breaker.needs_pings or breaker.state is not BreakerState.OPEN
    breaker.ping_answered()
    breaker.ping_answered()
    assert not breaker.needs_pings
    assert breaker.admit()
    breaker.answered()
    assert breaker.state is BreakerState.CLOSED
