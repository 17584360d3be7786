"""One probe as a table: what it says of which container, and when the next attempt is due."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.v1.probe import Probe
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType
from workers.prober.state import (
    TICKS_PER_S,
    ProbeInput,
    ProbeSpec,
    ProbeState,
    Step,
    Target,
    answer,
    next_step,
    probe_spec,
)

STARTUP, LIVENESS, READINESS = ProbeType.STARTUP, ProbeType.LIVENESS, ProbeType.READINESS
UNKNOWN, SUCCESS, FAILURE = ProbeResult.UNKNOWN, ProbeResult.SUCCESS, ProbeResult.FAILURE
RESULTS = {"+": SUCCESS, "-": FAILURE, "?": UNKNOWN}
T0 = 1000.0
"""On both clocks."""
OLD = 500.0


def spec(type: ProbeType, **fields: Any) -> ProbeSpec:
    return probe_spec(type, Probe(**{"period_seconds": 10, "success_threshold": 1, "failure_threshold": 3, **fields}))


def at(seconds: float) -> Instant:
    """So long after the prober's birth."""
    return Instant(mono=T0 + seconds, wall=T0 + seconds)


def born() -> ProbeState:
    return ProbeState(born_wall=T0)


def new(started_at: float = 0.0, id: str = "c") -> Target:
    """A container that was started so long after the prober's birth."""
    return Target(id=id, started_at=T0 + started_at)


def taken_up(of: ProbeSpec, **scene: object) -> Step:
    return next_step(of, born(), msgspec.structs.replace(ProbeInput(target=new()), **scene), at(0.0))


def answers(of: ProbeSpec, words: str, state: ProbeState | None = None) -> tuple[str, ProbeState]:
    """Words after each answer of one container: ``.`` for nothing."""
    state = state or taken_up(of).state
    said = ""
    for n, word in enumerate(words):
        step = answer(of, state, RESULTS[word], at(10.0 * n))
        state = step.state
        said += {None: ".", SUCCESS: "+", FAILURE: "-"}[step.says]
    return said, state


# --- thresholds and what counts before them ---


@pytest.mark.parametrize(
    ("of", "given", "said"),
    [
        (spec(READINESS), "+", "+"),
        (spec(READINESS), "-", "."),
        (spec(READINESS), "+--+---", "+.....-"),
        (spec(READINESS, success_threshold=2), "+-++", "...+"),
        (spec(READINESS, failure_threshold=1), "+-+-", "+-+-"),
        (spec(READINESS), "+--?-", "+...-"),
        (spec(READINESS), "????", "...."),
        (spec(READINESS), "---++", "...+."),
        (spec(LIVENESS), "+++", "..."),
        (spec(LIVENESS), "--+---", ".....-"),
        (spec(LIVENESS, failure_threshold=1), "-", "-"),
        (spec(LIVENESS), "-?-?-", "....-"),
        (spec(STARTUP), "--+", "..+"),
        (spec(STARTUP), "---", "..-"),
        (spec(STARTUP, failure_threshold=30), "-" * 29 + "+", "." * 29 + "+"),
    ],
)
def test_only_so_many_equal_answers_in_a_row_say_something(of: ProbeSpec, given: str, said: str) -> None:
    assert answers(of, given)[0] == said


@pytest.mark.parametrize(("type", "initial"), [(STARTUP, UNKNOWN), (LIVENESS, SUCCESS), (READINESS, FAILURE)], ids=str)
def test_what_counts_before_the_first_answer_is_no_news(type: ProbeType, initial: ProbeResult) -> None:
    step = taken_up(spec(type), has_started=type is not STARTUP)
    assert (step.state.result, step.says, step.attempt) == (initial, None, True)


def test_zero_stands_for_the_default() -> None:
    assert probe_spec(LIVENESS, Probe()) == ProbeSpec(
        type=LIVENESS, initial_delay_s=0.0, period_s=10.0, success_threshold=1, failure_threshold=3
    )


# --- on hold ---


@pytest.mark.parametrize(
    ("of", "given"),
    [
        (spec(LIVENESS, failure_threshold=1), "-"),
        (spec(STARTUP, failure_threshold=1), "-"),
        (spec(STARTUP), "+"),
    ],
)
def test_nothing_is_probed_after_the_last_word_until_another_container_comes(of: ProbeSpec, given: str) -> None:
    _, state = answers(of, given)
    held = next_step(of, state, ProbeInput(target=new()), at(1000.0))
    assert (held.attempt, held.state.due) == (False, math.inf)
    other = next_step(of, held.state, ProbeInput(target=new(2000.0, "d"), has_started=False), at(2000.0))
    assert other.attempt is (of.type is STARTUP)
    assert other.state.run == 0
    assert other.says is None


def test_a_liveness_that_had_failed_is_probed_again_in_the_next_container() -> None:
    of = spec(LIVENESS, failure_threshold=1)
    _, state = answers(of, "-")
    step = next_step(of, state, ProbeInput(target=new(5.0, "d")), at(5.0))
    assert (step.attempt, step.state.result) == (True, SUCCESS)


def test_readiness_is_never_on_hold() -> None:
    of = spec(READINESS, failure_threshold=1)
    _, state = answers(of, "+-")
    assert next_step(of, state, ProbeInput(target=new()), at(20.0)).attempt


# --- who probed it before ---


@pytest.mark.parametrize(
    ("type", "told", "result", "attempt"),
    [
        (READINESS, SUCCESS, SUCCESS, True),
        (READINESS, FAILURE, FAILURE, True),
        (READINESS, UNKNOWN, FAILURE, True),
        (LIVENESS, FAILURE, FAILURE, False),
        (LIVENESS, UNKNOWN, SUCCESS, True),
        (STARTUP, SUCCESS, SUCCESS, False),
        (STARTUP, FAILURE, FAILURE, False),
        (STARTUP, UNKNOWN, UNKNOWN, True),
    ],
)
def test_the_next_worker_goes_on_from_what_is_known(
    type: ProbeType, told: ProbeResult, result: ProbeResult, attempt: bool
) -> None:
    step = taken_up(spec(type), known_result=told)
    assert (step.state.result, step.attempt, step.says) == (result, attempt, None)


# --- the first attempt ---


@pytest.mark.parametrize(
    ("delay", "started_at", "seen_at", "due"),
    [
        (0, 3.0, 3.25, 3.25),
        (15, 3.0, 3.25, 18.0),
        (15, 3.0, 30.0, 30.0),
        (15, 3600.0, 3.25, 18.25),
    ],
    ids=["at once", "after its delay", "long over", "the clock was set back"],
)
def test_the_first_attempt_counts_from_the_start_of_the_container(
    delay: int, started_at: float, seen_at: float, due: float
) -> None:
    step = next_step(
        spec(LIVENESS, initial_delay_seconds=delay), born(), ProbeInput(target=new(started_at)), at(seen_at)
    )
    assert step.state.due == pytest.approx(T0 + due)
    assert step.attempt is (due == seen_at)


@pytest.mark.parametrize("began", [0.001, 0.01, 0.1, 0.99, 123.456])
@pytest.mark.parametrize("period_s", [1, 3, 10])
def test_attempts_begin_on_ticks(began: float, period_s: int) -> None:
    """The first one by less than a tick later, and all that follow."""
    of = spec(READINESS, period_seconds=period_s)
    state = next_step(of, born(), ProbeInput(target=new(began)), at(began)).state
    assert 0 <= state.due - T0 - began < 1 / TICKS_PER_S
    for _ in range(5):
        assert (state.due * TICKS_PER_S).is_integer()
        state = answer(of, state, SUCCESS, Instant(mono=state.due + 0.007, wall=state.due)).state


@pytest.mark.parametrize(
    ("started_at", "delay", "due"),
    [(-OLD, 0, 7.0), (-1.0, 15, 14.0), (0.5, 0, 0.5)],
    ids=["adopted", "adopted within its delay", "new"],
)
def test_only_what_ran_before_the_prober_is_spread(started_at: float, delay: int, due: float) -> None:
    scene = ProbeInput(target=new(started_at), jitter_s=7.0)
    now = at(max(started_at, 0.0))
    step = next_step(spec(READINESS, initial_delay_seconds=delay), born(), scene, now)
    assert step.state.due == pytest.approx(T0 + due)


# --- the rhythm ---


@pytest.mark.parametrize(("took_s", "next_due"), [(0.0, 10.0), (0.3, 10.0), (9.99, 10.0), (10.0, 20.0), (34.0, 40.0)])
def test_the_rhythm_does_not_drift_however_long_an_attempt_takes(took_s: float, next_due: float) -> None:
    of = spec(READINESS)
    step = answer(of, taken_up(of).state, SUCCESS, at(took_s))
    assert step.state.due == T0 + next_due
    assert not next_step(of, step.state, ProbeInput(target=new()), at(next_due - 0.01)).attempt
    assert next_step(of, step.state, ProbeInput(target=new()), at(next_due)).attempt


# --- startup goes first ---


@pytest.mark.parametrize("type", [LIVENESS, READINESS])
def test_the_others_begin_when_the_container_has_started(type: ProbeType) -> None:
    of = spec(type)
    waiting = taken_up(of, has_started=False)
    assert (waiting.attempt, waiting.state.due) == (False, math.inf)
    begun = next_step(of, waiting.state, ProbeInput(target=new()), at(33.0))
    assert (begun.attempt, begun.state.due) == (True, T0 + 33.0)


# --- a container that does not run ---


def test_what_does_not_run_is_not_ready() -> None:
    of = spec(READINESS)
    _, state = answers(of, "+")
    gone = next_step(of, state, ProbeInput(target=None), at(15.0))
    assert (gone.says, gone.attempt, gone.state.due) == (FAILURE, False, math.inf)
    assert next_step(of, gone.state, ProbeInput(target=None), at(16.0)).says is None


@pytest.mark.parametrize("type", [STARTUP, LIVENESS])
def test_the_end_of_a_container_is_no_answer(type: ProbeType) -> None:
    gone = next_step(spec(type), taken_up(spec(type)).state, ProbeInput(target=None), at(1.0))
    assert (gone.says, gone.attempt, gone.state.ended) == (None, False, False)


def test_a_container_that_somebody_has_started_again_begins_without_a_past() -> None:
    of = spec(READINESS)
    _, state = answers(of, "+--")
    again = next_step(of, state, ProbeInput(target=new(40.0), known_result=SUCCESS), at(40.0))
    assert (again.says, again.state.result, again.state.run, again.attempt) == (FAILURE, FAILURE, 0, True)


# --- a pod that goes down ---


@pytest.mark.parametrize(
    ("type", "given", "says"),
    [(STARTUP, "", SUCCESS), (STARTUP, "+", None), (STARTUP, "---", None), (LIVENESS, "--", None)],
)
def test_startup_and_liveness_end_quietly_with_the_pod(type: ProbeType, given: str, says: ProbeResult | None) -> None:
    _, state = answers(spec(type), given)
    step = next_step(spec(type), state, ProbeInput(target=new(), terminating=True), at(100.0))
    assert (step.says, step.attempt, step.state.ended) == (says, False, True)


def test_readiness_goes_on_while_the_pod_goes_down() -> None:
    of = spec(READINESS)
    step = next_step(of, answers(of, "+")[1], ProbeInput(target=new(), terminating=True), at(10.0))
    assert (step.attempt, step.state.ended) == (True, False)
