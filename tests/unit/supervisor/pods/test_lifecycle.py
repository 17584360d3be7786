"""Phase machine of one pod: latest wins, a kill is never overwritten, grace only shrinks, stale answers are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from ipc.link.messages.pod_worker import SyncAction, SyncDone, SyncResult, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.pods.lifecycle import MINIMUM_GRACE_PERIOD_S, PodLifecycle, effective_grace_period


def view(*states: ContainerState) -> RuntimePodStatus:
    containers = tuple(RuntimeContainerStatus(id="c", name="c", attempt=0, state=state) for state in states)
    return RuntimePodStatus(uid="u", containers=containers)


GONE, DOWN, UP = view(), view(ContainerState.EXITED), view(ContainerState.RUNNING)


def pod(grace_s: int | None = 30, deletion_grace_s: int | None = None) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u", deletion_grace_period_seconds=deletion_grace_s),
        spec=PodSpec(containers=(Container(name="c", image="i"),), termination_grace_period_seconds=grace_s),
    )


def lifecycle(grace_s: int = 30) -> PodLifecycle:
    return PodLifecycle(pod(grace_s))


def answer(
    to: PodLifecycle,
    error: SyncError = SyncError.NONE,
    cancelled: bool = False,
    generation: int | None = None,
    changed: bool = False,
    results: tuple[SyncResult, ...] = (),
) -> SyncDone:
    flight = to.in_flight
    assert flight is not None
    return SyncDone(
        uid="u",
        generation=flight.generation if generation is None else generation,
        incarnation=flight.incarnation,
        kind=flight.kind,
        error=error,
        cancelled=cancelled,
        changed=changed,
        results=results,
    )


@pytest.mark.parametrize(("unwanted", "phase"), [(False, WorkType.TERMINATING), (True, WorkType.TERMINATED)])
def test_a_sandbox_alone_holds_up_only_a_pod_that_stays(unwanted: bool, phase: WorkType) -> None:
    """The sandbox of an unwanted pod ends with its removal."""
    one = lifecycle()
    if unwanted:
        one.remove(None, 1.0)
    else:
        one.terminate()
    sandbox = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, created_at=0.0)
    one.settle(msgspec.structs.replace(DOWN, sandboxes=(sandbox,)))
    assert one.phase is phase
    one.settle(msgspec.structs.replace(UP, sandboxes=(sandbox,)))
    assert one.phase is WorkType.TERMINATING


def test_one_sync_at_a_time() -> None:
    one = lifecycle()
    assert one.idle is None
    one.dispatched(3, 1)
    one.update(pod())
    assert one.idle is not None, "the update waits for the sync in flight"
    one.done(answer(one))
    assert one.idle is None


def test_a_stale_generation_or_incarnation_is_no_answer() -> None:
    one = lifecycle()
    one.dispatched(3, 1)
    stale = answer(one, generation=0)
    assert not one.answered_by(stale)
    one.lost()
    one.dispatched(3, 2)
    late = SyncDone(uid="u", generation=2, incarnation=1, kind=WorkType.SYNC)
    assert not one.answered_by(late)


def test_the_whole_way_down() -> None:
    one = lifecycle()
    one.dispatched(3, 1)
    assert one.remove(None, 100.0), "the sync in flight is in the way"
    one.done(answer(one, cancelled=True))
    assert (one.phase, one.pending) == (WorkType.TERMINATING, True)
    assert one.dispatched(3, 1).kind is WorkType.TERMINATING
    one.done(answer(one))
    assert one.pending, "somebody has to look whether it is down"
    one.settle(DOWN)
    assert one.dispatched(3, 1).kind is WorkType.TERMINATED
    one.done(answer(one))
    assert not one.finished, "an empty view ends it, not a promise"
    one.settle(DOWN)
    assert not one.finished
    one.settle(GONE)
    assert one.finished


def test_an_update_never_revives_what_goes_down() -> None:
    one = lifecycle()
    one.remove(None, 100.0)
    one.dispatched(3, 1)
    one.update(pod())
    assert one.phase is WorkType.TERMINATING
    assert not one.pending


def completed() -> PodLifecycle:
    one = lifecycle()
    one.terminate()
    one.settle(DOWN)
    one.dispatched(3, 1)
    one.done(answer(one))
    one.settle(DOWN)
    return one


def test_a_pod_that_completed_is_finished_until_it_is_removed() -> None:
    one = completed()
    assert one.finished
    assert one.idle is not None
    one.remove(None, 101.0)
    assert one.idle is None
    assert one.dispatched(3, 1).remove


def test_a_finished_pod_that_runs_again_goes_down_again() -> None:
    one = completed()
    one.observed(DOWN, is_newer=True)
    assert one.idle is not None
    one.observed(UP, is_newer=True)
    assert one.idle is None
    one.settle(UP)
    assert one.dispatched(3, 1).kind is WorkType.TERMINATING


def test_a_pod_that_starts_again_behind_its_last_sync_is_not_finished() -> None:
    """A start that timed out took effect later, while TERMINATED was under way."""
    one = lifecycle()
    one.terminate()
    one.settle(DOWN)
    one.dispatched(3, 1)
    one.observed(UP, is_newer=True)
    one.done(answer(one))
    one.settle(UP)
    assert (one.phase, one.finished, one.idle) == (WorkType.TERMINATING, False, None)


def test_removal_during_the_sync_that_keeps_everything_is_carried_out_by_another() -> None:
    one = lifecycle()
    one.terminate()
    one.settle(GONE)
    assert not one.dispatched(3, 1).remove
    one.remove(None, 101.0)
    one.done(answer(one))
    one.settle(GONE)
    assert not one.finished, "its logs are still there"
    assert one.dispatched(3, 1).remove


def test_what_goes_down_moves_on_when_its_view_changes() -> None:
    one = lifecycle()
    one.remove(None, 100.0)
    one.settle(UP)
    one.dispatched(3, 1)
    one.done(answer(one, error=SyncError.TIMEOUT))
    assert one.idle is not None, "only when it is due"
    one.observed(DOWN, is_newer=True)
    assert one.idle is None


SANDBOX = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, created_at=0.0)
MADE = msgspec.structs.replace(UP, sandboxes=(SANDBOX,))
"""All that is wanted of the pod runs."""
FAILED = SyncResult(action=SyncAction.START_CONTAINER, target="c", error=SyncError.RUN_CONTAINER)


def made(one: PodLifecycle, **answered: Any) -> PodLifecycle:
    """Have a sync of it end, which has made something unless ``answered`` says otherwise."""
    one.dispatched(3, 1)
    one.done(answer(one, **{"changed": True, **answered}))
    return one


def test_what_a_sync_has_made_needs_no_other_sync() -> None:
    one = made(lifecycle())
    one.observed(MADE, is_newer=True)
    assert one.idle is not None
    one.observed(MADE, is_newer=True)
    assert one.idle is None, "somebody else has changed it since"


def test_a_view_from_before_its_end_does_not_say_what_a_sync_has_made() -> None:
    one = made(lifecycle())
    one.observed(MADE, is_newer=False)
    assert one.idle is None


@pytest.mark.parametrize(
    "answered",
    [{"changed": False}, {"error": SyncError.TIMEOUT}, {"cancelled": True}, {"results": (FAILED,)}],
    ids=["nothing", "failed", "cancelled", "in part"],
)
def test_a_sync_that_has_not_done_all_is_followed_by_another(answered: dict[str, Any]) -> None:
    one = made(lifecycle(), **answered)
    one.observed(MADE, is_newer=True)
    assert one.idle is None


@pytest.mark.parametrize(
    "seen",
    [
        UP,
        msgspec.structs.replace(MADE, sandboxes=(SANDBOX, SANDBOX)),
        msgspec.structs.replace(DOWN, sandboxes=(SANDBOX,)),
        msgspec.structs.replace(MADE, containers=(*UP.containers, *DOWN.containers)),
        msgspec.structs.replace(MADE, sandboxes=(msgspec.structs.replace(SANDBOX, state=SandboxState.NOT_READY),)),
    ],
    ids=["no sandbox", "two sandboxes", "has ended", "one too many", "sandbox has ended"],
)
def test_a_view_of_more_or_less_than_is_wanted_is_followed_by_a_sync(seen: RuntimePodStatus) -> None:
    one = made(lifecycle())
    one.observed(seen, is_newer=True)
    assert one.idle is None


def test_a_pod_with_init_containers_is_synced_after_each() -> None:
    wanted = pod()
    spec = msgspec.structs.replace(wanted.spec, init_containers=wanted.spec.containers)
    one = made(PodLifecycle(msgspec.structs.replace(wanted, spec=spec)))
    one.observed(MADE, is_newer=True)
    assert one.idle is None


def test_an_edit_during_the_sync_is_carried_out_whatever_that_has_made() -> None:
    one = lifecycle()
    one.dispatched(3, 1)
    one.update(pod())
    one.done(answer(one, changed=True))
    one.observed(MADE, is_newer=True)
    assert one.idle is None


def test_a_shorter_grace_interrupts_and_a_longer_one_does_not() -> None:
    one = lifecycle(30)
    one.remove(None, 100.0)
    one.dispatched(3, 1)
    assert not one.remove(60, 101.0)
    assert one.grace_period_s == 30
    assert one.remove(5, 102.0)
    assert one.grace_period_s == 5


@given(asked=st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=1, max_size=8))
def test_grace_only_shrinks_and_never_below_the_minimum(asked: list[int | None]) -> None:
    one = lifecycle(30)
    seen = []
    for override in asked:
        one.remove(override, 1.0)
        assert one.grace_period_s is not None
        seen.append(one.grace_period_s)
    assert seen == sorted(seen, reverse=True)
    assert min(seen) >= MINIMUM_GRACE_PERIOD_S


def test_zero_everywhere_is_the_minimum() -> None:
    assert effective_grace_period(pod(0), 0, None) == MINIMUM_GRACE_PERIOD_S
    assert effective_grace_period(pod(None), None, None) == MINIMUM_GRACE_PERIOD_S
    assert effective_grace_period(pod(30, deletion_grace_s=10), 20, None) == 10


@pytest.mark.parametrize(
    ("deletion_grace_s", "override_s", "current_s"), [(0, None, None), (None, 0, None), (0, 20, None), (None, 0, 20)]
)
def test_zero_is_an_answer(deletion_grace_s: int | None, override_s: int | None, current_s: int | None) -> None:
    """The spec's thirty seconds count only for those who asked for nothing."""
    asked = effective_grace_period(pod(30, deletion_grace_s), override_s, current_s)
    assert asked == MINIMUM_GRACE_PERIOD_S


def test_a_deletion_without_grace_takes_a_second() -> None:
    one = lifecycle(30)
    one.remove(0, 100.0)
    assert one.grace_period_s == MINIMUM_GRACE_PERIOD_S


def lost(one: PodLifecycle) -> None:
    one.lost()


def cancelled(one: PodLifecycle) -> None:
    one.done(answer(one, cancelled=True))


@pytest.mark.parametrize("ends", [lost, cancelled])
def test_dead_containers_that_a_sync_may_have_left_are_removed_by_the_next(
    ends: Callable[[PodLifecycle], None],
) -> None:
    one = lifecycle()
    one.collect(("a", "b"))
    one.dispatched(1, 1)
    one.collect(("b", "c"))
    ends(one)
    assert one.dead_containers == ("a", "b", "c")
    assert one.dispatched(1, 2).dead_containers == ("a", "b", "c")


def test_dead_containers_that_a_sync_has_removed_are_nobody_s_any_more() -> None:
    one = lifecycle()
    one.collect(("a",))
    one.dispatched(1, 1)
    one.done(answer(one))
    assert one.dead_containers == ()
