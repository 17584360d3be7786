"""The back-off from labels is the kubelet's back-off from memory."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from workers.compute.crash_loop_backoff import RestartDecision, crash_loop_limits, do_backoff

LIMITS = crash_loop_limits(300.0)
START = 1_800_000_000.0
HASH = "definition"


def status(*containers: RuntimeContainerStatus) -> RuntimePodStatus:
    return RuntimePodStatus(uid="u", containers=containers)


def dead(
    attempt: int = 0, *, created_at: float = START, ran_s: float = 0.0, backoff_s: float = 0.0, hash: str = HASH
) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(
        id=f"c{attempt}",
        name="main",
        attempt=attempt,
        state=ContainerState.EXITED,
        hash=hash,
        backoff_s=backoff_s,
        created_at=created_at,
        finished_at=created_at + ran_s,
    )


def decide(*containers: RuntimeContainerStatus, at: float) -> RestartDecision:
    return do_backoff("main", HASH, status(*containers), at, LIMITS)


def test_the_first_container_starts_at_once_and_remembers_nothing() -> None:
    assert decide(at=START) == RestartDecision(backoff_s=0.0)


def test_the_first_crash_restarts_at_once() -> None:
    assert decide(dead(ran_s=1), at=START + 1) == RestartDecision(backoff_s=10.0)


def test_a_later_crash_waits_from_its_end() -> None:
    crashed = dead(1, ran_s=5, backoff_s=40.0)
    assert decide(crashed, at=START + 44) == RestartDecision(backoff_s=40.0, retry_at=START + 45)
    assert decide(crashed, at=START + 45) == RestartDecision(backoff_s=80.0)


def test_the_delay_is_capped() -> None:
    assert decide(dead(9, ran_s=1, backoff_s=300.0), at=START + 301).backoff_s == 300.0


@pytest.mark.parametrize("back_s", [41.0, 3 * 3600.0, 20 * 365 * 86_400.0])
def test_a_clock_that_was_set_back_is_not_waited_for(back_s: float) -> None:
    crashed = dead(1, ran_s=5, backoff_s=40.0)
    assert decide(crashed, at=START + 5 - back_s) == RestartDecision(backoff_s=80.0)


def test_a_clock_that_was_set_back_a_little_makes_a_wait_twice_as_long_at_the_most() -> None:
    crashed = dead(1, ran_s=5, backoff_s=40.0)
    assert decide(crashed, at=START + 5 - 39) == RestartDecision(backoff_s=40.0, retry_at=START + 45)


def test_a_clock_that_was_set_forward_starts_one_container_early_and_then_waits_again() -> None:
    jump_s = 3 * 3600.0
    crashed = dead(3, ran_s=5, backoff_s=160.0)
    started = decide(crashed, at=START + 5 + jump_s)
    assert started == RestartDecision(backoff_s=320.0 if LIMITS.max_s >= 320.0 else 300.0)
    next_one = dead(4, created_at=START + 5 + jump_s, ran_s=1, backoff_s=started.backoff_s)
    assert decide(next_one, at=START + 7 + jump_s).retry_at == START + 6 + jump_s + started.backoff_s


@pytest.mark.parametrize(("ran_s", "label"), [(600.0, 300.0), (600.1, 10.0)])
def test_a_long_run_forgets(ran_s: float, label: float) -> None:
    """Exactly 600 s is not longer than 600 s."""
    assert decide(dead(3, ran_s=ran_s, backoff_s=160.0), at=START + ran_s + 160) == RestartDecision(backoff_s=label)


def test_another_definition_starts_at_once_from_the_beginning() -> None:
    assert decide(dead(3, ran_s=1, backoff_s=160.0, hash="old"), at=START + 1) == RestartDecision(backoff_s=10.0)


def test_a_container_killed_while_it_ran_keeps_its_delay() -> None:
    """Nothing of that name has exited in the view: upstream neither waits nor counts."""
    running = msgspec.structs.replace(dead(2, backoff_s=20.0), state=ContainerState.RUNNING, finished_at=0.0)
    assert decide(running, at=START + 5) == RestartDecision(backoff_s=20.0)


@pytest.mark.parametrize(
    ("configured_s", "expected"), [(2.0, (2.0, 2.0)), (11.0, (10.0, 11.0)), (300.0, (10.0, 300.0))]
)
def test_a_low_maximum_lowers_the_first_delay(configured_s: float, expected: tuple[float, float]) -> None:
    limits = crash_loop_limits(configured_s)
    assert (limits.initial_s, limits.max_s) == expected


class UpstreamBackoff:
    """client-go's flowcontrol.Backoff for one key, as the kubelet makes it, written down from its definition."""

    def __init__(self, max_s: float) -> None:
        self.initial_s, self.max_s = min(10.0, max_s), max_s
        self.backoff_s: float | None = None
        self.last_update = 0.0

    def forget(self) -> None:
        """Another key: the definition changed."""
        self.backoff_s = None

    def do_backoff(self, finished_at: float, now: float) -> float:
        """Seconds that are left to wait; at 0 the container is started, and the entry moves on."""
        expired = finished_at - self.last_update > 600.0
        if self.backoff_s is not None and not expired and now - finished_at < self.backoff_s:
            return self.backoff_s - (now - finished_at)
        if self.backoff_s is None or expired:
            self.backoff_s = self.initial_s
        else:
            self.backoff_s = min(self.backoff_s * 2, self.max_s)
        self.last_update = now
        return 0.0


class Life(msgspec.Struct, frozen=True):
    """One container's life: how long it runs, when after its end it is first looked at, whether it was edited."""

    runs_s: int
    looked_after_s: int
    edited: bool


pod_table = st.builds(
    Life,
    runs_s=st.one_of(st.integers(0, 30), st.integers(590, 610), st.integers(0, 5000)),
    looked_after_s=st.integers(0, 400),
    edited=st.booleans(),
)


@given(st.lists(pod_table, max_size=20), st.sampled_from([1.0, 11.0, 60.0, 300.0]))
def test_labels_remember_what_upstream_remembers(history: list[Life], max_s: float) -> None:
    """Every life after the first: both wait the same time, ours with nothing but the last container's labels."""
    limits, upstream = crash_loop_limits(max_s), UpstreamBackoff(max_s)
    now, label, hash = START, 0.0, 0
    for attempt, lifecycle in enumerate(history):
        created_at, finished_at = now, now + lifecycle.runs_s
        last = dead(attempt, created_at=created_at, ran_s=lifecycle.runs_s, backoff_s=label, hash=str(hash))
        now = finished_at + lifecycle.looked_after_s
        if lifecycle.edited:
            hash += 1
            upstream.forget()
        decision = do_backoff("main", str(hash), status(last), now, limits)
        left_s = upstream.do_backoff(finished_at, now)
        assert (decision.retry_at - now if decision.retry_at else 0.0) == left_s
        if left_s:
            now += left_s
            assert upstream.do_backoff(finished_at, now) == 0.0
            decision = do_backoff("main", str(hash), status(last), now, limits)
            assert decision.retry_at == 0.0
        label = decision.backoff_s
        assert label == upstream.backoff_s
