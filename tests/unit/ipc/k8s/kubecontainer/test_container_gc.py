"""Dead containers that go. Upstream's tables are in tests/kubelet_tables; here is what they do not say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.kubecontainer.container_gc import (
    GcPolicy,
    PodStates,
    dead_to_remove,
    evict_containers,
    evict_sandboxes,
    newest_ids,
)
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, SandboxState, SandboxStatus

NOW = 1_800_000_000.0
NOBODY = PodStates()


def container(name: str, attempt: int, state: str = "exited", **fields: Any) -> RuntimeContainerStatus:
    made = {"id": f"{name}-{attempt}", "created_at": NOW - 1000 + attempt, **fields}
    return RuntimeContainerStatus(name=name, attempt=attempt, state=ContainerState(state), **made)


def pod_table(name: str, *states: str) -> list[RuntimeContainerStatus]:
    """Containers of one name, the oldest first."""
    return [container(name, attempt, state) for attempt, state in enumerate(states)]


DEAD_3 = pod_table("a", "exited", "exited", "exited")
RUNNING_AFTER_3 = pod_table("a", "exited", "exited", "exited", "running")


@pytest.mark.parametrize(
    ("containers", "maximum", "removed"),
    [
        (DEAD_3, 1, ["a-0", "a-1"]),
        (DEAD_3, 2, ["a-0"]),
        (DEAD_3, 3, []),
        (DEAD_3, -1, []),
        (DEAD_3, 0, ["a-0", "a-1"]),
        (RUNNING_AFTER_3, 1, ["a-0", "a-1"]),
        (RUNNING_AFTER_3, 0, ["a-0", "a-1", "a-2"]),
        (pod_table("a", "exited", "created"), 1, []),
        (pod_table("a", "exited", "unknown"), 1, []),
        (pod_table("a", "exited", "created", "exited"), 1, ["a-0"]),
        ([*DEAD_3, *pod_table("b", "exited", "exited")], 1, ["a-0", "a-1", "b-0"]),
    ],
)
def test_each_container_keeps_its_newest_dead(
    containers: list[RuntimeContainerStatus], maximum: int, removed: list[str]
) -> None:
    policy = GcPolicy(max_per_pod_container=maximum)
    assert list(dead_to_remove(containers, policy, NOW)) == removed
    assert list(dead_to_remove(containers[::-1], policy, NOW)) == removed, "whatever their order"


def test_the_young_are_neither_counted_nor_removed() -> None:
    containers = [*DEAD_3, container("a", 3, created_at=NOW - 5)]
    assert dead_to_remove(containers, GcPolicy(max_per_pod_container=1, min_age_s=60.0), NOW) == ("a-0", "a-1")
    assert dead_to_remove(containers, GcPolicy(max_per_pod_container=1, min_age_s=4.0), NOW) == ("a-0", "a-1", "a-2")


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, list[RuntimeContainerStatus]]:
    states = st.sampled_from(["exited", "exited", "running", "created", "unknown"])
    pods = {}
    for uid in "xyz":
        listed = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6), states), max_size=8))
        unique = {(name, attempt): state for name, attempt, state in listed}
        pods[uid] = [container(n, a, state, id=f"{uid}-{n}-{a}") for (n, a), state in unique.items()]
    return pods


@given(nodes(), st.integers(-1, 3), st.integers(-1, 8), st.booleans())
def test_what_goes_of_a_node(
    pods: dict[str, list[RuntimeContainerStatus]], per_container: int, maximum: int, spare: bool
) -> None:
    policy = GcPolicy(max_per_pod_container=per_container, max_containers=maximum)
    everything = [c for containers in pods.values() for c in containers]
    spared = frozenset().union(*(newest_ids(containers) for containers in pods.values())) if spare else frozenset()
    removed = evict_containers(pods, NOBODY, policy, NOW, all_sources_ready=True, spared=spared)
    assert len(set(removed)) == len(removed)
    assert not spared.intersection(removed)
    dead = [c for c in everything if c.state is ContainerState.EXITED]
    assert {c.id for c in dead} >= set(removed), "only what has exited"
    left = [c for c in dead if c.id not in removed]
    free = [c for c in left if c.id not in spared]
    assert maximum < 0 or len(left) <= maximum or not free, "the maximum holds, or all that is left is spared"
    if per_container < 0 and maximum < 0:
        assert removed == ()


def test_beyond_the_nodes_maximum_the_oldest_go_first() -> None:
    pods = {
        "x": [container("a", 5, id="newest")],
        "y": [container("b", 0, id="oldest")],
        "z": [container("c", 1, id="old")],
    }
    removed = evict_containers(pods, NOBODY, GcPolicy(max_containers=1), NOW, all_sources_ready=True)
    assert removed == ("oldest", "old")


def test_deleted_pods_lose_all_only_when_every_source_is_known() -> None:
    pods = {"x": DEAD_3}
    states = PodStates(deleted={"x"})
    assert len(evict_containers(pods, states, GcPolicy(), NOW, all_sources_ready=True)) == 3
    assert len(evict_containers(pods, states, GcPolicy(), NOW, all_sources_ready=False)) == 2


def test_the_spared_are_counted_and_others_go_in_their_place() -> None:
    pods = {"job": [container("a", 0, id="job")], "x": pod_table("b", "exited", "running")}
    policy = GcPolicy(max_containers=1)
    removed = evict_containers(pods, NOBODY, policy, NOW, all_sources_ready=True, spared={"job"})
    assert removed == ("b-0",)


def test_a_ready_sandbox_and_one_with_containers_stay() -> None:
    def sandbox(attempt: int, state: SandboxState) -> SandboxStatus:
        return SandboxStatus(id=str(attempt), name="p", infra_id="i", attempt=attempt, state=state)

    sandboxes = [sandbox(n, SandboxState.NOT_READY) for n in range(3)] + [sandbox(3, SandboxState.READY)]
    assert evict_sandboxes(sandboxes, {"1"}, all_of_them=True) == ["0", "2"]
    assert evict_sandboxes(sandboxes[:3], {"1"}, all_of_them=False) == ["0"]
    assert evict_sandboxes(sandboxes[:3], (), all_of_them=True) == ["0", "1", "2"]
