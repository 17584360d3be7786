from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.podresources.cgroup_config import pod_cgroup_config
from ipc.k8s.podresources.node_resources import CfsQuota
from tests.support.pods import container, pod

MIB = 1024 * 1024
OVERHEAD = {"cpu": "250m", "memory": "100Mi"}


@pytest.mark.parametrize(
    ("limits", "overhead", "memory", "quota"),
    [
        ({"cpu": "1", "memory": "200Mi"}, {}, 200 * MIB, 100_000),
        ({"cpu": "1", "memory": "200Mi"}, OVERHEAD, 300 * MIB, 125_000),
        ({"cpu": "1"}, OVERHEAD, None, 125_000),
    ],
)
def test_the_overhead_of_a_class_comes_on_top_of_a_limit_that_there_is(
    limits: ResourceList, overhead: ResourceList, memory: int | None, quota: int
) -> None:
    limited = msgspec.structs.replace(container("a"), resources=ResourceRequirements(limits=limits, requests=limits))
    found = pod_cgroup_config(pod(limited, overhead=overhead), CfsQuota())
    assert (found.memory, found.cpu_quota) == (memory, quota)
    assert found.cpu_shares == 1024 * quota // 100_000
