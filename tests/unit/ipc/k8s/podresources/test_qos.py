"""The QoS class of a pod, from the requests and limits of its manifest."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.podresources.qos import compute_pod_qos
from tests.support.manifests import pod

BOTH = {"cpu": "100m", "memory": "64Mi"}
FULL = {"limits": BOTH}


def containers(*resources: Any) -> list[dict[str, Any]]:
    return [{"name": f"c{n}", "image": "busybox", "resources": each} for n, each in enumerate(resources)]


@pytest.mark.parametrize(
    ("fields", "qos_class"),
    [
        ({"containers": containers({})}, "BestEffort"),
        ({"containers": containers({"limits": {"ephemeral-storage": "1Gi"}})}, "BestEffort"),
        ({"containers": containers(FULL)}, "Guaranteed"),
        ({"containers": containers({"limits": BOTH, "requests": {"cpu": "0.1", "memory": "65536Ki"}})}, "Guaranteed"),
        ({"containers": containers({"limits": {"cpu": 1}})}, "Burstable"),
        ({"containers": containers({"requests": {"memory": "1Mi"}})}, "Burstable"),
        ({"containers": containers({"limits": BOTH, "requests": {"cpu": "50m"}})}, "Burstable"),
        ({"containers": containers(FULL, {})}, "Burstable"),
        ({"containers": containers(FULL), "initContainers": containers({})}, "Burstable"),
        ({"containers": containers({}), "resources": FULL}, "Guaranteed"),
        ({"containers": containers(FULL), "resources": {}}, "Guaranteed"),
        ({"containers": containers(FULL), "resources": {"limits": {}, "requests": {}}}, "Guaranteed"),
        ({"containers": containers({}), "resources": {}}, "BestEffort"),
    ],
)
def test_class(fields: dict[str, Any], qos_class: str) -> None:
    spec = {**fields, "initContainers": [{**c, "name": "init"} for c in fields.get("initContainers", ())]}
    assert compute_pod_qos(pod(**spec)) == qos_class
