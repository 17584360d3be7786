"""The restart count believes the attempt that a container carries, whatever else shows up beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ipc.api import Container, ContainerStatus, ObjectMeta, Pod, PodSpec
from ipc.pod_containers import ContainerKind
from ipc.runtime import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from supervisor.status.containers import Surroundings, container_statuses

POD = Pod(metadata=ObjectMeta(name="web", uid="u"), spec=PodSpec(containers=(Container(name="main"),)))
RUNNING, EXITED, UNKNOWN = ContainerState.RUNNING, ContainerState.EXITED, ContainerState.UNKNOWN

View = Sequence[RuntimeContainerStatus]


def life(id: str, attempt: int, state: ContainerState) -> RuntimeContainerStatus:
    return RuntimeContainerStatus(id=id, name="main", attempt=attempt, state=state, created_at=1.0, started_at=1.0)


def count_after(views: Sequence[View]) -> int:
    statuses: tuple[ContainerStatus, ...] = ()
    for view in views:
        observed = RuntimePodStatus(uid="u", containers=tuple(view))
        given = Surroundings(pod=POD, observed=observed)
        statuses = container_statuses(given, ContainerKind.REGULAR, POD.spec.containers, statuses)
    return statuses[0].restart_count


RESTARTED_ONCE = (
    [life("a", 0, RUNNING)],
    [life("a", 0, EXITED)],
    [life("b", 1, RUNNING), life("a", 0, EXITED)],
    [life("b", 1, RUNNING), life("a", 0, RUNNING)],
    [life("b", 1, RUNNING)],
)


@pytest.mark.parametrize("at", range(len(RESTARTED_ONCE) + 1))
@pytest.mark.parametrize("state", [RUNNING, EXITED, UNKNOWN])
def test_a_predecessor_seen_alone_counts_nothing(at: int, state: ContainerState) -> None:
    views = (*RESTARTED_ONCE[:at], [life("a", 0, state)], *RESTARTED_ONCE[at:])
    assert count_after(views) == 1


def test_one_that_is_lost_sight_of_counts_once() -> None:
    unknown = [life("a", 0, UNKNOWN)]
    assert count_after([[life("a", 0, RUNNING)], unknown]) == 1
    assert count_after([[life("a", 0, RUNNING)], unknown, [life("a", 0, EXITED)], [life("b", 1, RUNNING)]]) == 1


def test_attempts_that_begin_anew_go_on_from_what_was_told() -> None:
    many = [[life("e", 5, RUNNING)], [life("e", 5, EXITED)]]
    assert count_after([*many, [life("f", 0, RUNNING)]]) == 6
    assert count_after([*many, [life("f", 0, RUNNING)], [life("f", 0, RUNNING)]]) == 6
