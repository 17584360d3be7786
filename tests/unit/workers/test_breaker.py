"""The circuit breaker as a machine: what is told to it, and what it lets through."""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given
from hypothesis import strategies as st

from ipc.breaker_state import BreakerState
from tests.fakes.clock import simulate
from workers.breaker import MAX_FAILURES, PAUSE_MAX_S, Breaker
from workers.runtime import ErrorKind, RuntimeCallError
from workers.service_watch import Listener, ServiceWatch


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
    assert not breaker.in_doubt


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
    assert (breaker.state, breaker.in_doubt) == (BreakerState.HALF_OPEN, False)
    assert [breaker.admit(), breaker.admit()] == [True, False]
    breaker.failed("late", late=True)
    assert (breaker.state, breaker.in_doubt) == (BreakerState.OPEN, True)
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
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, PAUSE_MAX_S, PAUSE_MAX_S, PAUSE_MAX_S]
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
        assert breaker.in_doubt or breaker.state is not BreakerState.OPEN
    breaker.ping_answered()
    breaker.ping_answered()
    assert not breaker.in_doubt
    assert breaker.admit()
    breaker.answered()
    assert breaker.state is BreakerState.CLOSED


def test_a_service_that_answers_pings_and_no_call_is_told_of_once_in_so_long() -> None:
    told: list[tuple[float, str]] = []

    class Heard(Listener):
        def silent(self, why: str) -> None:
            told.append((asyncio.get_running_loop().time(), why))

    async def ping() -> None:
        await asyncio.sleep(0.001)

    async def call(watch: ServiceWatch, *, answered: bool) -> None:
        with contextlib.suppress(RuntimeCallError):
            async with watch.call("list"):
                await asyncio.sleep(0.0 if answered else 30.0)
                if not answered:
                    raise RuntimeCallError(ErrorKind.TIMEOUT, "list", "no answer within 30 s")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        watch = ServiceWatch(ping, lambda: None, Heard(), stuck_s=150.0)
        for _ in range(5):  # slow again and again, but not for good
            began = loop.time()
            while loop.time() < began + 100.0:
                await call(watch, answered=False)
                await asyncio.sleep(1.0)
            while watch.state is not BreakerState.CLOSED:
                await asyncio.sleep(1.0)
                await call(watch, answered=True)
        assert told == []
        began = loop.time()
        while loop.time() < began + 400.0:
            await call(watch, answered=False)
            await asyncio.sleep(1.0)
        first, second = (at - began for at, _ in told)
        assert 150.0 <= first < 220.0
        assert 150.0 <= second - first < 220.0
        assert "answers pings" in told[0][1]
        await watch.close()

    simulate(main)
