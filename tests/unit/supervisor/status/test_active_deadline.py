"""activeDeadlineSeconds: counted from startTime, ended by the sync tick, whatever becomes of the agent meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.link.messages.pod_worker import WorkType
from supervisor.status.active_deadline import DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE, past_active_deadline
from supervisor.status.generate import StatusInput, generate_pod_status
from tests.support.dialogue import POD_SLOT, WALL, RestartPolicy, Talk, exited, running
from tests.support.dialogue import pod as base_pod

STARTED_AT = WALL - 1000.0


def pod(uid: str, deadline_s: int | None, **more: object) -> Pod:
    made = base_pod(uid, **more)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, active_deadline_seconds=deadline_s))


@pytest.mark.parametrize(
    ("deadline_s", "start_time", "active_until", "past"),
    [
        (None, rfc3339(WALL), WALL + 1e9, False),
        (10, None, WALL + 1e9, False),
        (10, rfc3339(WALL), WALL + 9.9, False),
        (10, rfc3339(WALL), WALL + 10.0, True),
        (10, rfc3339(WALL), WALL - 50.0, False),
    ],
)
def test_it_counts_from_the_start_time(
    deadline_s: int | None, start_time: str | None, active_until: float, past: bool
) -> None:
    assert past_active_deadline(pod("a", deadline_s), start_time, active_until) is past
    assert not past_active_deadline(None, start_time, active_until), "an orphan has none"


# --- the sync loop ---


def test_a_clock_that_is_set_forward_ends_no_pod() -> None:
    talk = Talk()
    talk.start(pod("a", 60))
    talk.clock_set_by_s = 3 * 3600.0
    assert talk.tick(after_s=30.0) == []
    talk.see(running("a"))
    assert talk.phase("a") == "Running"
    assert talk.tick(after_s=35.0) == ["terminating a"]


def test_the_tick_ends_a_pod_with_its_normal_grace() -> None:
    talk = Talk()
    talk.start(pod("a", 60, grace_s=20))
    assert talk.tick() == []
    assert talk.tick(after_s=59.0) == ["observe a"]
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 20
    assert talk.events == [f"{DEADLINE_EXCEEDED} a"]
    assert talk.phase("a") == "Running", "its containers are not down yet"
    talk.done("a")
    assert talk.see(exited("a", 143)) == ["terminated a"]
    status = talk.told["a"].status
    assert (status.phase, status.reason, status.message) == ("Failed", DEADLINE_EXCEEDED, DEADLINE_EXCEEDED_MESSAGE)
    assert talk.told["a"].deletion_timestamp == ""
    talk.done("a")
    talk.see(exited("a", 143))
    assert talk.tick(after_s=60.0) == []
    assert talk.events == [f"{DEADLINE_EXCEEDED} a"], "told once"


def test_a_sync_in_flight_is_cancelled() -> None:
    """A sync in flight may wait for an image."""
    talk = Talk()
    talk.ready()
    talk.relist()
    assert talk.add(pod("a", 5)) == ["track a", "sync a"]
    assert talk.tick(after_s=5.0) == ["cancel a"]
    assert talk.done("a", cancelled=True) == ["observe a"]
    talk.see(running("a"))
    assert talk.syncs["a"].kind is WorkType.TERMINATING


@pytest.mark.parametrize("deadline_s", [220, None])
def test_a_deadline_that_is_raised_or_taken_away_in_time_counts(deadline_s: int | None) -> None:
    talk = Talk()
    talk.start(pod("a", 150))
    talk.update(pod("a", deadline_s))
    for _ in range(2):
        talk.tick(after_s=90.0)
        assert talk.events == []
        talk.see(running("a"))
        talk.done("a")
    talk.tick(after_s=90.0)
    assert talk.events == ([] if deadline_s is None else [f"{DEADLINE_EXCEEDED} a"])


def test_a_deadline_that_is_set_later_counts_from_the_start() -> None:
    talk = Talk()
    talk.start("a")
    talk.tick(after_s=50.0)
    talk.update(pod("a", 40))
    talk.see(running("a"))
    assert talk.syncs["a"].kind is WorkType.TERMINATING, "it is over already"


def test_an_edit_does_not_revive_who_has_exceeded_it() -> None:
    talk = Talk()
    talk.start(pod("a", 60))
    talk.tick(after_s=60.0)
    talk.see(running("a"))
    talk.done("a")
    talk.see(exited("a", 143))
    talk.update(pod("a", 6000))
    talk.done("a")
    talk.see(exited("a", 143))
    assert (talk.phase("a"), talk.syncs["a"].kind) == ("Failed", WorkType.TERMINATED)


def test_without_any_look_at_it_a_pod_has_not_exceeded_anything() -> None:
    """Podman does not answer: it may have come to its end long ago, in time."""
    talk = Talk()
    talk.ready()
    talk.add(pod("a", 5))
    assert talk.tick(after_s=100.0) == []
    assert talk.phase("a") == "Pending"


def test_a_death_of_the_worker_that_stops_it_changes_nothing() -> None:
    talk = Talk()
    talk.start(pod("a", 60))
    talk.tick(after_s=60.0)
    talk.see(running("a"))
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.events == [f"{DEADLINE_EXCEEDED} a"]


# --- after a restart of the agent ---


def found(
    policy: RestartPolicy, *, exit_code: int | None, ended_after_s: float = 0.0, replaced_after_s: float = 0.0
) -> tuple[str, str]:
    """Phase and reason of a pod that an agent finds, with a deadline of 100 s that is over since long, in its first
    sandbox or in the one that has taken its place."""
    wanted = Pod(
        metadata=ObjectMeta(name="a", namespace="default", uid="a"),
        spec=PodSpec(
            containers=(Container(name="main", image="i"),), restart_policy=policy, active_deadline_seconds=100
        ),
    )
    ended = exit_code is not None
    main = RuntimeContainerStatus(
        id="c",
        name="main",
        attempt=0,
        state=ContainerState.EXITED if ended else ContainerState.RUNNING,
        exit_code=exit_code or 0,
        started_at=STARTED_AT,
        finished_at=STARTED_AT + ended_after_s if ended else 0.0,
    )
    state = SandboxState.NOT_READY if ended else SandboxState.READY
    made_at, begun = STARTED_AT + replaced_after_s, rfc3339(STARTED_AT) if replaced_after_s else ""
    sandbox = SandboxStatus(
        id="s", name="s", infra_id="i", attempt=0, state=state, created_at=made_at, active_since=begun
    )
    observed = RuntimePodStatus(uid="a", observed_at=1.0, sandboxes=(sandbox,), containers=(main,))
    given = StatusInput(pod=wanted, observed=observed, reasons={}, previous=None, was_observed_before=False)
    status = generate_pod_status(given, Instant(mono=2.0, wall=WALL))
    assert status.start_time == rfc3339(STARTED_AT), "the oldest sandbox's"
    return status.phase, status.reason


@pytest.mark.parametrize(
    ("policy", "exit_code", "ended_after_s", "expected"),
    [
        ("Always", None, 0.0, ("Failed", DEADLINE_EXCEEDED)),
        ("Always", 143, 101.0, ("Failed", DEADLINE_EXCEEDED)),
        ("Always", 1, 50.0, ("Failed", DEADLINE_EXCEEDED)),
        ("Never", 0, 50.0, ("Succeeded", "")),
        ("Never", 7, 50.0, ("Failed", "")),
        ("Never", 143, 101.0, ("Failed", DEADLINE_EXCEEDED)),
        ("Never", 0, 101.0, ("Failed", DEADLINE_EXCEEDED)),
        ("OnFailure", 0, 99.0, ("Succeeded", "")),
    ],
)
def test_the_next_agent_tells_the_same(
    policy: RestartPolicy, exit_code: int | None, ended_after_s: float, expected: tuple[str, str]
) -> None:
    assert found(policy, exit_code=exit_code, ended_after_s=ended_after_s) == expected
    assert found(policy, exit_code=exit_code, ended_after_s=ended_after_s, replaced_after_s=40.0) == expected


def test_the_worker_is_told_since_when_a_pod_with_a_deadline_is_active() -> None:
    """A worker writes that on the sandbox, and on those that come after it."""
    talk = Talk()
    talk.start(pod("a", 60))
    talk.start("b")
    start_time = talk.told["a"].status.start_time
    talk.tick(after_s=30.0)
    for each in "ab":
        talk.update(pod(each, 60 if each == "a" else None, grace_s=7))
        talk.see(running(each))
    assert (talk.syncs["a"].active_since, talk.syncs["b"].active_since) == (start_time, "")


def test_a_pod_that_an_earlier_agent_has_ended_makes_no_second_event() -> None:
    talk = Talk()
    talk.ready()
    talk.add(pod("a", 5))
    ended = exited("a", 143)
    old = msgspec.structs.replace(ended.sandboxes[0], created_at=STARTED_AT)
    talk.relist(msgspec.structs.replace(ended, sandboxes=(old,)))
    assert (talk.phase("a"), talk.told["a"].status.reason) == ("Failed", DEADLINE_EXCEEDED)
    assert talk.events == []
