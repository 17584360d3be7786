"""A container's share of the node (kuberuntime_container_linux_test.go and helpers_linux_test.go have the kinds)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.podresources.cgroup_config import milli_cpu_to_quota, milli_cpu_to_shares
from ipc.k8s.podresources.node_resources import CfsQuota, NodeResources, SwapLimits
from tests.support.pods import container, pod
from workers.specgen.container_resources import container_resources, pod_resources

NODE = NodeResources(capacity={"memory": "8G"}, controllers=frozenset({"cpu", "memory", "pids"}))


def resources(limits: dict[str, str], requests: dict[str, str] | None = None) -> ResourceRequirements:
    return ResourceRequirements(limits=limits, requests=requests or {})


def of(
    own: ResourceRequirements, whole: ResourceRequirements | None = None, node: NodeResources = NODE
) -> dict[str, Any]:
    made = pod(container("main", resources=own), resources=whole)
    return container_resources(made, made.spec.containers[0], node)


def test_requests_and_limits_become_weights_quotas_and_maxima() -> None:
    own = resources({"cpu": "2", "memory": "128Mi"}, {"cpu": "500m", "memory": "64Mi"})
    assert of(own)["resource_limits"] == {
        "cpu": {"shares": 512, "quota": 200_000, "period": 100_000},
        "memory": {"limit": 128 << 20, "swap": 128 << 20},
        "unified": {"memory.oom.group": "1"},
    }


def test_a_container_that_asks_for_nothing_has_the_least_weight_and_no_limit() -> None:
    assert of(resources({})) == {"resource_limits": {"cpu": {"shares": 2}}, "oom_score_adj": 1000}


def test_the_pods_limits_are_those_of_a_container_without_its_own() -> None:
    whole = resources({"cpu": "1", "memory": "1Gi"})
    assert of(resources({}), whole)["resource_limits"]["memory"]["limit"] == 1 << 30
    assert of(resources({"memory": "1Mi"}), whole)["resource_limits"]["memory"]["limit"] == 1 << 20


def test_nothing_is_asked_of_a_controller_that_is_not_ours() -> None:
    own = resources({"cpu": "2", "memory": "128Mi"}, {"cpu": "1", "memory": "128Mi"})
    none = NodeResources(capacity={"memory": "8G"}, least_oom_score_adj=100)
    assert of(own, node=none) == {"oom_score_adj": 984}
    assert "memory" not in of(own, node=NodeResources(controllers=frozenset({"cpu"})))["resource_limits"]


@pytest.mark.parametrize(("least", "score"), [(0, 0), (-500, -500), (-999, -997), (200, 200)])
def test_no_score_is_lower_than_our_own(least: int, score: int) -> None:
    guaranteed = resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    node = NodeResources(capacity={"memory": "8G"}, least_oom_score_adj=least)
    assert of(guaranteed, node=node)["oom_score_adj"] == score


@pytest.mark.parametrize(("milli", "shares"), [(0, 2), (1, 2), (2, 2), (100, 102), (1000, 1024), (10**6, 262_144)])
def test_shares(milli: int, shares: int) -> None:
    assert milli_cpu_to_shares(milli) == shares


@pytest.mark.parametrize(("milli", "quota"), [(1, 1000), (5, 1000), (10, 1000), (50, 5000), (1500, 150_000)])
def test_quota(milli: int, quota: int) -> None:
    assert milli_cpu_to_quota(milli, 100_000) == quota


def test_the_pods_cgroup_weighs_what_its_containers_ask_for_together() -> None:
    asked = [container(name, resources=resources({}, {"cpu": cpu})) for name, cpu in (("a", "250m"), ("b", "750m"))]
    assert pod_resources(pod(*asked), NODE) == {"resource_limits": {"cpu": {"shares": 1024}}}
    assert pod_resources(pod("a"), NODE) == {"resource_limits": {"cpu": {"shares": 2}}}, "whoever asks for nothing"
    assert pod_resources(pod(*asked), NodeResources()) == {}


def test_the_pods_cgroup_has_the_limits_of_the_pod_or_those_of_all_its_containers_together() -> None:
    one = container("one", resources=resources({"cpu": "1", "memory": "1Mi"}, {"cpu": "1"}))
    whole = resources({"cpu": "500m", "memory": "64Mi"}, {"cpu": "100m"})
    limits = {"cpu": {"shares": 102, "quota": 50000, "period": 100000}, "memory": {"limit": 64 << 20}}
    assert pod_resources(pod(one, resources=whole), NODE) == {"resource_limits": limits}
    own = {"cpu": {"shares": 1024, "quota": 100_000, "period": 100_000}, "memory": {"limit": 1 << 20}}
    assert pod_resources(pod(one), NODE) == {"resource_limits": own}
    other = container("other", resources=resources({"cpu": "500m"}, {"cpu": "500m"}))
    both = {"cpu": {"shares": 1536, "quota": 150_000, "period": 100_000}}
    assert pod_resources(pod(one, other), NODE) == {"resource_limits": both}, "one has no limit of memory"
    assert pod_resources(pod(one, "free"), NODE) == {"resource_limits": {"cpu": {"shares": 1024}}}


def test_quotas_follow_the_settings() -> None:
    limited = resources({"cpu": "2"})
    short = NodeResources(controllers=NODE.controllers, cfs=CfsQuota(period_us=5_000))
    assert of(limited, node=short)["resource_limits"]["cpu"] == {"shares": 2048, "quota": 10_000, "period": 5_000}
    none = NodeResources(controllers=NODE.controllers, cfs=CfsQuota(enforced=False))
    assert of(limited, node=none)["resource_limits"]["cpu"] == {"shares": 2048}
    assert pod_resources(pod("a", resources=limited), none)["resource_limits"]["cpu"] == {"shares": 2}


def test_no_container_has_more_processes_than_is_set() -> None:
    node = NodeResources(controllers=NODE.controllers, pod_pids_limit=100)
    assert of(resources({}), node=node)["resource_limits"]["pids"] == {"limit": 100}
    none = NodeResources(controllers=frozenset({"cpu"}), pod_pids_limit=100)
    assert "pids" not in of(resources({}), node=none)["resource_limits"]


SWAP = SwapLimits(is_limited_by_cgroup=True, total_bytes=8 << 30)
SWAPPING = NodeResources(capacity={"memory": "16Gi"}, controllers=NODE.controllers, swap=SWAP)
NO_SWAP = msgspec.structs.replace(SWAPPING, swap=SwapLimits(is_limited_by_cgroup=True))


@pytest.mark.parametrize(
    ("own", "node", "memory", "unified"),
    [
        (resources({}, {"memory": "2Gi"}), SWAPPING, None, {"memory.swap.max": str(1 << 30)}),
        (resources({"memory": "4Gi"}, {"memory": "2Gi"}), SWAPPING, 5 << 30, {"memory.oom.group": "1"}),
        (resources({"memory": "2Gi"}, {"memory": "2Gi"}), SWAPPING, 2 << 30, {"memory.oom.group": "1"}),
        (resources({}), SWAPPING, None, {"memory.swap.max": "0"}),
        (resources({}, {"memory": "2Gi"}), NO_SWAP, None, {}),
    ],
)
def test_burstable_pods_share_the_swap_by_their_requests(
    own: ResourceRequirements, node: NodeResources, memory: int | None, unified: dict[str, str]
) -> None:
    made = of(own, node=node)["resource_limits"]
    assert made.get("memory", {}).get("swap") == memory
    assert made.get("unified", {}) == unified


def test_a_critical_pod_gets_no_swap() -> None:
    critical = pod(container("main", resources=resources({}, {"memory": "2Gi"})), priority=2 * 10**9)
    made = container_resources(critical, critical.spec.containers[0], SWAPPING)
    assert made["resource_limits"]["unified"] == {"memory.swap.max": "0"}
