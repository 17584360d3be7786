"""Capacity and allocatable; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

import pytest

from ipc.k8s.api.default_resources import is_extended
from ipc.k8s.nodestatus.node import NodeStatus
from workers.nodestatus.machine import NodeLimits, set_machine_info
from workers.statsapi.machine_info import MachineInfo

MACHINE = MachineInfo(num_cores=2, memory_capacity=4 * 1024**3, boot_id="b")


def test_capacity_and_what_is_left_of_it() -> None:
    limits = NodeLimits(max_pods=110, pods_per_core=10, reserved={"cpu": "250m", "memory": "5Gi"})
    status, events = set_machine_info(NodeStatus(), MACHINE, limits, "n")
    assert status.capacity == {"cpu": "2", "memory": "4Gi", "pods": "20"}
    assert status.allocatable == {"cpu": "1750m", "memory": "0", "pods": "20"}
    assert events == ()


def test_a_reboot_is_an_event_once() -> None:
    limits = NodeLimits(max_pods=1)
    before, _ = set_machine_info(NodeStatus(), MachineInfo(num_cores=1, boot_id="a"), limits, "n")
    after, (event,) = set_machine_info(before, MACHINE, limits, "n")
    assert (event.reason, event.message) == ("Rebooted", "Node n has been rebooted, boot id: b")
    assert set_machine_info(after, MACHINE, limits, "n")[1] == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("example.com/gpu", True), ("cpu", False), ("kubernetes.io/x", False), ("requests.example.com/gpu", False)],
)
def test_extended_resources(name: str, expected: bool) -> None:
    assert is_extended(name) is expected
