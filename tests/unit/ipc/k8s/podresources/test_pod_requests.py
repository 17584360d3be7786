"""Requests of a pod, over all its containers (component-helpers resource/helpers.go, PodRequests)."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.decode import decode_pod
from ipc.k8s.podresources.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, pod_requests
from tests.support.api_manifests import manifest


def init(name: str, *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "image": "a:1", "resources": {"requests": requests}, **policy}


@pytest.mark.parametrize(
    ("init_containers", "cpu", "memory"),
    [
        ([], 500, 300),
        ([init("large", cpu="900m")], 900, 300),
        ([init("one", cpu="400m"), init("two", cpu="400m")], 500, 300),
        ([init("s", sidecar=True, cpu="100m", memory="200")], 600, 500),
        ([init("s", sidecar=True, cpu="100m"), init("late", cpu="900m")], 1000, 300),
        ([init("early", cpu="900m"), init("s", sidecar=True, cpu="100m")], 900, 300),
    ],
    ids=["none", "a large one", "one at a time", "a sidecar beside", "after a sidecar", "before a sidecar"],
)
def test_init_containers_count_one_at_a_time_and_sidecars_beside(
    init_containers: list[dict[str, Any]], cpu: int, memory: int
) -> None:
    main = {"resources": {"requests": {"cpu": "500m", "memory": "300"}}}
    found = pod_requests(decode_pod(manifest(spec={"initContainers": init_containers}, container=main)))
    assert found == {CPU: cpu, MEMORY: memory}
    assert EPHEMERAL_STORAGE not in found
