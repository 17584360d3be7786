"""The restart count believes the attempt that a container carries, whatever else shows up beside it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from supervisor.status.container_states import ended_unseen
from supervisor.status.containers import ContainerStatusInput, container_statuses

MAIN = Container(name="main")
POD = Pod(metadata=ObjectMeta(name="web", uid="u"), spec=PodSpec(containers=(MAIN,)))
RUNNING, EXITED, UNKNOWN = ContainerState.RUNNING, ContainerState.EXITED, ContainerState.UNKNOWN

View = Sequence[RuntimeContainerStatus]


def lifecycle(id: str, attempt: int, state: ContainerState) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(id=id, name="main", attempt=attempt, state=state, created_at=1.0, started_at=1.0)


def count_after(views: Sequence[View]) -> int:
    statuses: tuple[ContainerStatus, ...] = ()
    for view in views:
        observed = RuntimePodStatus(uid="u", containers=tuple(view))
        given = ContainerStatusInput(pod=POD, observed=observed)
        statuses = container_statuses(given, ContainerKind.REGULAR, POD.spec.containers, statuses)
    return statuses[0].restart_count


RESTARTED_ONCE = (
    [lifecycle("a", 0, RUNNING)],
    [lifecycle("a", 0, EXITED)],
    [lifecycle("b", 1, RUNNING), lifecycle("a", 0, EXITED)],
    [lifecycle("b", 1, RUNNING), lifecycle("a", 0, RUNNING)],
    [lifecycle("b", 1, RUNNING)],
)


@pytest.mark.parametrize("at", range(len(RESTARTED_ONCE) + 1))
@pytest.mark.parametrize("state", [RUNNING, EXITED, UNKNOWN])
def test_a_predecessor_seen_alone_counts_nothing(at: int, state: ContainerState) -> None:
    views = (*RESTARTED_ONCE[:at], [lifecycle("a", 0, state)], *RESTARTED_ONCE[at:])
    assert count_after(views) == 1


def test_one_that_is_lost_sight_of_counts_once() -> None:
    unknown = [lifecycle("a", 0, UNKNOWN)]
    assert count_after([[lifecycle("a", 0, RUNNING)], unknown]) == 1
    assert (
        count_after([[lifecycle("a", 0, RUNNING)], unknown, [lifecycle("a", 0, EXITED)], [lifecycle("b", 1, RUNNING)]])
        == 1
    )


def test_attempts_that_begin_anew_go_on_from_what_was_told() -> None:
    many = [[lifecycle("e", 5, RUNNING)], [lifecycle("e", 5, EXITED)]]
    assert count_after([*many, [lifecycle("f", 0, RUNNING)]]) == 6
    assert count_after([*many, [lifecycle("f", 0, RUNNING)], [lifecycle("f", 0, RUNNING)]]) == 6


def first_count(seen: View, lost: dict[str, int], *, terminating: bool = False) -> int:
    observed = RuntimePodStatus(uid="u", containers=tuple(seen), lost_attempts=lost)
    given = ContainerStatusInput(pod=POD, observed=observed, terminating=terminating)
    return container_statuses(given, ContainerKind.REGULAR, POD.spec.containers, ())[0].restart_count


def test_a_new_agent_counts_what_its_logs_tell() -> None:
    assert first_count([], {"main": 3}) == 4, "it starts again"
    assert first_count([], {"main": 3}, terminating=True) == 4, "as it was told before it was to go"
    assert first_count([lifecycle("c", 2, EXITED)], {"main": 3}) == 4
    assert first_count([lifecycle("c", 2, EXITED)], {"other": 3}) == 2


def test_one_that_was_only_made_is_no_restart_yet() -> None:
    made = lifecycle("c", 2, ContainerState.CREATED)
    assert count_after([[made, lifecycle("b", 1, EXITED)]]) == 1
    assert (
        count_after([[made, lifecycle("b", 1, EXITED)], [lifecycle("b", 1, EXITED)], [lifecycle("d", 2, RUNNING)]]) == 2
    )
    assert count_after([[made]]) == 2, "the end of the one before it counts already"


def test_an_init_container_that_goes_before_the_others_is_restarted_once() -> None:
    """An init container is removed first; while the regular ones are there each new status must not count it again."""
    first = Container(name="first")
    pod = Pod(metadata=ObjectMeta(name="web", uid="u"), spec=PodSpec(init_containers=(first,), containers=(MAIN,)))
    done = RuntimeContainerStatus(id="i", name="first", attempt=0, state=EXITED, created_at=1.0, started_at=1.0)
    created = lifecycle("a", 1, ContainerState.CREATED)
    statuses: tuple[ContainerStatus, ...] = ()
    for seen, restarting in (([done, created], False), ([created], True), ([created], True), ([], True)):
        observed = RuntimePodStatus(uid="u", containers=tuple(seen))
        given = ContainerStatusInput(pod=pod, observed=observed, restarting_all=restarting)
        statuses = container_statuses(given, ContainerKind.INIT, (first,), statuses)
    assert statuses[0].restart_count == 1


def test_an_init_container_that_never_ran_is_not_restarted_with_the_others() -> None:
    pod = Pod(
        metadata=ObjectMeta(name="web", uid="u"),
        spec=PodSpec(init_containers=(Container(name="late"),), containers=POD.spec.containers),
    )
    statuses: tuple[ContainerStatus, ...] = ()
    for seen, restarting in (([lifecycle("a", 0, RUNNING)], False), ([], True)):
        observed = RuntimePodStatus(uid="u", containers=tuple(seen))
        given = ContainerStatusInput(pod=pod, observed=observed, restarting_all=restarting)
        statuses = container_statuses(given, ContainerKind.INIT, pod.spec.init_containers, statuses)
    assert statuses[0].restart_count == 0


@pytest.mark.parametrize("state", [RUNNING, EXITED])
def test_a_late_init_container_of_a_pod_that_is_past_it_does_not_start_again(state: ContainerState) -> None:
    """The init container was made in this sandbox, whatever has become of the regular one."""
    pod = Pod(
        metadata=ObjectMeta(name="web", uid="u"),
        spec=PodSpec(init_containers=(Container(name="late"),), containers=POD.spec.containers),
    )
    sandbox = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY)
    made = msgspec.structs.replace(lifecycle("a", 0, state), sandbox_id="s")
    observed = RuntimePodStatus(uid="u", sandboxes=(sandbox,), containers=(made,), lost_attempts={"late": 3})
    given = ContainerStatusInput(pod=pod, observed=observed)
    assert container_statuses(given, ContainerKind.INIT, pod.spec.init_containers, ())[0].restart_count == 3


@pytest.mark.parametrize(("sandbox_id", "count"), [("s", 3), ("before", 4)])
def test_an_init_container_behind_which_another_has_begun_does_not_start_again(sandbox_id: str, count: int) -> None:
    """In this sandbox; in one before it that says nothing of this one."""
    init = (Container(name="late"), Container(name="main"))
    spec = PodSpec(init_containers=init, containers=(Container(name="other"),))
    pod = Pod(metadata=ObjectMeta(name="web", uid="u"), spec=spec)
    sandbox = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY)
    begun = msgspec.structs.replace(lifecycle("a", 0, RUNNING), sandbox_id=sandbox_id)
    observed = RuntimePodStatus(uid="u", sandboxes=(sandbox,), containers=(begun,), lost_attempts={"late": 3})
    given = ContainerStatusInput(pod=pod, observed=observed)
    assert container_statuses(given, ContainerKind.INIT, init, ())[0].restart_count == count


def test_a_pod_that_goes_down_in_the_middle_of_a_restart_of_all_counts_no_more() -> None:
    statuses: tuple[ContainerStatus, ...]
    statuses = (ContainerStatus(name="main", state=ended_unseen("Error", "", exit_code=1), restart_count=1),)
    for _ in range(3):
        given = ContainerStatusInput(pod=POD, observed=RuntimePodStatus(uid="u"), terminating=True, restarting_all=True)
        statuses = container_statuses(given, ContainerKind.REGULAR, POD.spec.containers, statuses)
    assert statuses[0].restart_count == 1
