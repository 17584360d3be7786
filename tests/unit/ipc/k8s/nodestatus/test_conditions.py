"""Conditions of the node; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

from ipc.k8s.nodestatus.conditions import set_pressure, set_ready, with_conditions
from ipc.k8s.nodestatus.node import NodeStatus

CAPACITY = {"cpu": "1", "memory": "1Gi", "pods": "1", "ephemeral-storage": "1Gi"}


def test_ready_stands_last_and_keeps_its_date() -> None:
    conditions, events = set_ready((), errors=[], capacity=CAPACITY, now="1")
    assert events == ()
    conditions, _ = set_pressure(conditions, "DiskPressure", pressure=True, now="2")
    conditions, _ = set_ready(conditions, errors=[""], capacity=CAPACITY, now="3")
    shown = with_conditions(NodeStatus(), conditions).conditions
    assert [(c.type, c.last_heartbeat_time, c.last_transition_time) for c in shown] == [
        ("DiskPressure", "2", "2"),
        ("Ready", "3", "1"),
    ]


def test_a_node_without_capacity_is_not_ready() -> None:
    (ready,), _ = set_ready((), errors=[], capacity={"cpu": "1"}, now="1")
    assert ready.status == "False"
    assert ready.message == "missing node capacity for resources: memory, pods, ephemeral-storage"
