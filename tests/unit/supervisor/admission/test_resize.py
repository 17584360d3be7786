"""May a pod that runs have other resources, and what restarts for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources, SwapLimits
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resize import DEFERRED, INFEASIBLE, PendingResize, resize_problem, restarts_for_resize
from tests.support.manifests import pod

IN_PLACE = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
BY_RESTART = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
BARE = NodeResources(allocatable={"cpu": "4", "memory": "4Gi", "ephemeral-storage": "4Gi"})
DELEGATED = NodeResources(allocatable=BARE.allocatable, controllers=frozenset({"cpu", "memory"}))
NO_CONTROLLER = "no such cgroup controller is delegated to this user: main is restarted, against its resizePolicy"
QOS = (
    'spec: Invalid value: "": Pod QOS Class may not change as a result of resizing'
    ": main is restarted, against its resizePolicy"
)


def asking(cpu: str, *policies: dict[str, str], memory: str = "1Gi", **fields: Any) -> Pod:
    resources = {"requests": {"cpu": cpu, "memory": memory, "ephemeral-storage": "1"}}
    main = {"name": "main", "image": "busybox", "resources": resources, "resizePolicy": list(policies), **fields}
    return pod(containers=[{"name": "first", "image": "busybox"}, main])


FIRST, OTHER = {"name": "first", "image": "busybox"}, {"name": "other", "image": "busybox"}
MAIN, LARGER = (
    {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}} for cpu in "12"
)
LIMITED = asking("1", resources={"limits": {"cpu": "1"}})
NOTHING = pod(containers=[{"name": "first", "image": "busybox"}, {"name": "main", "image": "busybox"}])


@pytest.mark.parametrize(
    ("before", "after", "node", "words"),
    [
        (asking("1"), asking("1", command=["other"]), BARE, ""),
        (asking("1"), asking("2"), BARE, f"cpu changed: {NO_CONTROLLER}"),
        (asking("1", IN_PLACE), asking("2", IN_PLACE), BARE, f"cpu changed: {NO_CONTROLLER}"),
        (asking("1", BY_RESTART), asking("2", BY_RESTART), BARE, ""),
        (asking("1"), asking("2", memory="2Gi"), BARE, f"cpu and memory changed: {NO_CONTROLLER}"),
        (asking("1"), asking("2", memory="2Gi"), DELEGATED, ""),
        (NOTHING, asking("1"), DELEGATED, f"cpu and memory changed: {QOS}"),
        (pod(containers=[{"name": "first", "image": "busybox"}]), NOTHING, DELEGATED, ""),
        (pod(containers=[MAIN, FIRST]), pod(containers=[FIRST, LARGER]), DELEGATED, ""),
        (pod(containers=[FIRST, MAIN]), pod(containers=[FIRST, LARGER, OTHER]), DELEGATED, ""),
        (pod(containers=[OTHER, MAIN]), pod(containers=[FIRST, LARGER]), DELEGATED, ""),
        (
            LIMITED,
            asking("1", resources={"requests": {"cpu": "1"}}),
            DELEGATED,
            "cpu changed: spec.containers[1].resources.limits: Forbidden: resource limits cannot be removed"
            ": main is restarted, against its resizePolicy",
        ),
    ],
)
def test_what_restarts_against_its_policy(before: Pod, after: Pod, node: NodeResources, words: str) -> None:
    expected = [f"spec.containers[1].resources: {words}"] if words else []
    assert list(restarts_for_resize(before, after, node)) == expected


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (asking("2"), "", ""),
        (asking("3"), DEFERRED, "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"),
        (asking("5"), INFEASIBLE, "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"),
        (
            asking("5", memory="5Gi"),
            INFEASIBLE,
            "Node didn't have enough capacity: memory, requested: 5368709120, capacity: 4294967296",
        ),
    ],
)
def test_what_there_is_room_for(wanted: Pod, reason: str, message: str) -> None:
    other = pod("other", containers=[{"name": "main", "image": "b", "resources": {"requests": {"cpu": "2"}}}])
    problem = resize_problem(asking("1"), wanted, NodeUsage([other]), BARE)
    assert ((problem.reason, problem.message) if problem else ("", "")) == (reason, message)


def test_a_node_of_which_nothing_is_known_has_room() -> None:
    assert resize_problem(asking("1"), asking("5000"), NodeUsage(), NodeResources()) is None


SWAPPING = NodeResources(
    capacity={"memory": "4Gi"},
    allocatable=BARE.allocatable,
    controllers=DELEGATED.controllers,
    swap=SwapLimits(is_limited_by_cgroup=True, total_bytes=1 << 30),
)
NO_SWAP = msgspec.structs.replace(SWAPPING, swap=SwapLimits(is_limited_by_cgroup=True))
MEMORY_BY_RESTART = {"resourceName": "memory", "restartPolicy": "RestartContainer"}


@pytest.mark.parametrize(
    ("before", "after", "node", "is_refused"),
    [
        (asking("1"), asking("1", memory="2Gi"), SWAPPING, True),
        (asking("1"), asking("1", memory="2Gi"), NO_SWAP, False),
        (asking("1"), asking("2"), SWAPPING, False),
        (asking("1", MEMORY_BY_RESTART), asking("1", MEMORY_BY_RESTART, memory="2Gi"), SWAPPING, False),
        (asking("1", BY_RESTART), asking("1", BY_RESTART, memory="2Gi"), SWAPPING, True),
        (NOTHING, asking("1"), SWAPPING, False),
    ],
    ids=["in place", "without swap", "cpu", "by a restart", "by a restart for cpu", "another QoS class"],
)
def test_other_memory_of_a_container_with_swap(before: Pod, after: Pod, node: NodeResources, is_refused: bool) -> None:
    problem = resize_problem(before, after, NodeUsage(), node)
    expected = PendingResize(INFEASIBLE, "In-place resize of containers with swap is not supported.", "swap_limitation")
    assert problem == (expected if is_refused else None)
