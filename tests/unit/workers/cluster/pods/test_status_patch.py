"""Patches of a pod's status: what differs, as Go's strategic two-way merge says it."""

from __future__ import annotations

from typing import Any

import pytest

from workers.cluster.pods.status_manager import status_patch

READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
SCHEDULED = {"type": "PodScheduled", "status": "True"}
RESIZING = {"type": "PodResizeInProgress", "status": "True"}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"phase": "Pending"}, {"phase": "Pending"}, {}, id="nothing"),
        pytest.param(
            {"conditions": [READY], "resources": {}},
            {"conditions": [READY | {"lastProbeTime": None}], "resources": {"limits": None}},
            {},
            id="a null is nothing",
        ),
        pytest.param({"phase": "Pending"}, {"phase": "Running"}, {"phase": "Running"}, id="scalar"),
        pytest.param({"reason": "Evicted"}, {}, {"reason": None}, id="gone"),
        pytest.param(
            {"containerStatuses": [{"name": "a"}, {"name": "b"}]},
            {"containerStatuses": [{"name": "a"}, {"name": "b", "ready": True}]},
            {"containerStatuses": [{"name": "a"}, {"name": "b", "ready": True}]},
            id="containers are one value",
        ),
        pytest.param({}, {"conditions": [READY]}, {"conditions": [READY]}, id="first conditions"),
        pytest.param(
            {"conditions": [NOT_READY, SCHEDULED]},
            {"conditions": [READY, SCHEDULED]},
            {
                "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
                "conditions": [{"type": "Ready", "status": "True", "reason": None}],
            },
            id="changed condition",
        ),
        pytest.param(
            {"conditions": [RESIZING, READY]},
            {"conditions": [READY]},
            {
                "$setElementOrder/conditions": [{"type": "Ready"}],
                "conditions": [{"$patch": "delete", "type": "PodResizeInProgress"}],
            },
            id="condition that is gone",
        ),
        pytest.param(
            {"podIPs": [{"ip": "10.0.0.1"}]},
            {"podIPs": [{"ip": "10.0.0.2"}]},
            {
                "$setElementOrder/podIPs": [{"ip": "10.0.0.2"}],
                "podIPs": [{"ip": "10.0.0.2"}, {"$patch": "delete", "ip": "10.0.0.1"}],
            },
            id="addresses",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {"resources": {"limits": {"cpu": "2"}}},
            {"resources": {"limits": {"cpu": "2", "memory": None}}},
            id="mapping",
        ),
    ],
)
def test_patch(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert status_patch(old, new) == patch
