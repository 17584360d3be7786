"""Conditions of the node; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

import msgspec
import pytest

from ipc.nodestatus.conditions import MIB, pressures_of, set_pressure, set_ready, with_conditions
from ipc.nodestatus.node import NodeStatus
from ipc.stats.values import FileSystem, Memory, NodeSample, ProcessLimit, Source

CAPACITY = {"cpu": "1", "memory": "1Gi", "pods": "1", "ephemeral-storage": "1Gi"}
FS = FileSystem(time=1.0, capacity=1000, available=500, inodes=1000, inodes_free=500)
CALM = NodeSample(
    name="n",
    memory=Memory(source=Source.HOST, time=1.0, limit=1000 * MIB, working_set=500 * MIB),
    fs=FS,
    image_fs=FS,
    process_limit=ProcessLimit(time=1.0, max_pid=100, processes=99),
)


def test_pressure_by_the_default_thresholds() -> None:
    assert pressures_of(CALM) == {"MemoryPressure": False, "DiskPressure": False, "PIDPressure": False}


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("MemoryPressure", {"memory": Memory(source=Source.HOST, time=1.0, limit=599 * MIB, working_set=500 * MIB)}),
        ("DiskPressure", {"fs": msgspec.structs.replace(FS, available=99)}),
        ("DiskPressure", {"fs": msgspec.structs.replace(FS, inodes_free=49)}),
        ("DiskPressure", {"image_fs": msgspec.structs.replace(FS, available=149)}),
    ],
)
def test_each_threshold(kind: str, changed: dict[str, object]) -> None:
    pressures = pressures_of(msgspec.structs.replace(CALM, **changed))
    assert [name for name, pressure in pressures.items() if pressure] == [kind]


def test_conditions_whose_figures_are_not_known_are_absent() -> None:
    assert pressures_of(NodeSample(name="n")) == {}
    without_inodes = msgspec.structs.replace(FS, inodes=0, inodes_free=0)
    assert pressures_of(msgspec.structs.replace(CALM, fs=without_inodes))["DiskPressure"] is False


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
