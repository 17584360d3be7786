"""The priority of a pod, and who is critical by it."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.scheduling.priority import can_preempt, is_critical, pod_priority
from tests.support.manifests import pod


@pytest.mark.parametrize(
    ("spec", "priority", "critical"),
    [
        ({}, 0, False),
        ({"priority": -5}, -5, False),
        ({"priority": 1_999_999_999}, 1_999_999_999, False),
        ({"priority": 2_000_000_000}, 2_000_000_000, True),
        ({"priorityClassName": "batch"}, 0, False),
        ({"priorityClassName": "batch", "priority": 7}, 7, False),
        ({"priorityClassName": "system-cluster-critical"}, 2_000_000_000, True),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, True),
        ({"priorityClassName": "system-node-critical", "priority": 3}, 3, False),
    ],
)
def test_priority(spec: dict[str, Any], priority: int, critical: bool) -> None:
    found = pod(**spec)
    assert (pod_priority(found), is_critical(found)) == (priority, critical)


@pytest.mark.parametrize(
    ("preemptor", "other", "expected"),
    [
        (2_000_000_000, 0, True),
        (2_000_000_000, 1_999_999_999, True),
        (2_000_000_000, 2_000_000_000, False),
        (2_000_001_000, 2_000_000_000, True),
        (2_000_000_000, 2_000_001_000, False),
        (1_000_000, 0, False),
    ],
)
def test_only_critical_pods_preempt_and_none_of_their_rank(preemptor: int, other: int, expected: bool) -> None:
    assert can_preempt(pod(priority=preemptor), pod(priority=other)) is expected
