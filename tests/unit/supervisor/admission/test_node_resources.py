"""Resources that the node has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.k8s.podresources.pod_requests import amount
from supervisor.admission.node_resources import Machine, node_resources, read_machine
from supervisor.config.resolution.node_thresholds import node_thresholds, pods_memory
from supervisor.config.settings import Settings, SettingsError

MACHINE = Machine(cpus=2, memory_bytes=4_051_288 << 10, storage_bytes=64 << 30)
NOTHING_RESERVED = Settings(eviction_hard={})


def test_quantities_as_kubernetes_writes_them() -> None:
    found = node_resources(MACHINE, NOTHING_RESERVED)
    assert found.capacity == {"cpu": "2", "memory": "4051288Ki", "ephemeral-storage": "64Gi"}
    assert (found.allocatable, found.reserved) == (found.capacity, {})


def test_what_is_reserved_is_not_for_pods() -> None:
    settings = Settings(
        kube_reserved={"cpu": "100m", "memory": "100Mi"},
        system_reserved={"cpu": "150m", "ephemeral-storage": "1Gi", "pid": "100"},
        eviction_hard={"memory.available": "100Mi", "nodefs.available": "25%", "imagefs.available": "50%"},
        eviction_soft={"memory.available": "1Gi"},
        eviction_soft_grace_period={"memory.available": "1m"},
    )
    found = node_resources(MACHINE, settings)
    assert found.reserved == {"cpu": "250m", "memory": "200Mi", "ephemeral-storage": "17Gi"}
    assert found.allocatable == {"cpu": "1750m", "memory": "3846488Ki", "ephemeral-storage": "47Gi"}


@pytest.mark.parametrize("reserved", [{"memory": "4Gi"}, {"cpu": "2001m"}])
def test_no_more_can_be_reserved_than_there_is(reserved: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"resource '{next(iter(reserved))}' has a reservation of"):
        node_resources(MACHINE, Settings(kube_reserved=reserved))


def test_pods_have_slices_where_systemd_makes_them() -> None:
    managed = msgspec.structs.replace(MACHINE, managed_cgroup="/sys/fs/cgroup/x", max_pids=1000)
    settings = Settings(
        instance_name="two",
        kube_reserved={"cpu": "500m", "memory": "1Gi", "pid": "100"},
        eviction_hard={"memory.available": "1Gi"},
    )
    found = node_resources(managed, settings)
    assert found.pod_cgroups == PodCgroups(root="rootlet-two", directory="/sys/fs/cgroup/x", enforced=True)
    assert found.pods_limit == {"cpu": "1500m", "memory": "3002712Ki", "pid": "900"}, "without what evictionHard keeps"
    assert node_resources(MACHINE, settings).pod_cgroups is None
    loose = node_resources(managed, Settings(enforce_node_allocatable=("none",)))
    assert loose.pod_cgroups == PodCgroups(directory="/sys/fs/cgroup/x", enforced=False)


@pytest.mark.parametrize(
    ("enforced", "controllers", "signals"),
    [(("pods",), {"memory"}, 2), (("none",), {"memory"}, 1), (("pods",), {"cpu"}, 1)],
)
def test_memory_of_all_pods_is_watched_where_it_is_limited(
    enforced: tuple[str, ...], controllers: set[str], signals: int
) -> None:
    machine = msgspec.structs.replace(MACHINE, managed_cgroup="/x", controllers=frozenset(controllers))
    settings = Settings(enforce_node_allocatable=enforced, eviction_hard={"memory.available": "1Gi"})
    found = node_thresholds(settings, node_resources(machine, settings))
    assert [each.signal for each in found] == ["memory.available", "allocatableMemory.available"][:signals]
    assert len(node_thresholds(settings, node_resources(MACHINE, settings))) == 1


@pytest.mark.parametrize(
    ("kept", "enforced", "counted"),
    [
        ({"kube_reserved": {"memory": "1Gi"}}, ("pods",), True),
        ({"system_reserved": {"memory": "1Gi"}, "kube_reserved": {"cpu": "1"}}, ("pods",), True),
        ({"kube_reserved": {"memory": "1Gi"}}, ("none",), False),
        ({"kube_reserved": {"cpu": "1"}}, ("pods",), False),
    ],
)
def test_memory_of_all_pods_is_counted_where_no_cgroup_holds_them_and_some_is_reserved(
    kept: dict[str, Any], enforced: tuple[str, ...], *, counted: bool
) -> None:
    settings = Settings(enforce_node_allocatable=enforced, eviction_hard={"memory.available": "100Mi"}, **kept)
    node = node_resources(MACHINE, settings)
    expected = amount(node.capacity, "memory") - (1 << 30) if counted else 0
    assert pods_memory(settings, node) == expected
    assert len(node_thresholds(settings, node)) == 1 + counted
    managed = msgspec.structs.replace(MACHINE, managed_cgroup="/x", controllers=frozenset({"memory"}))
    assert pods_memory(settings, node_resources(managed, settings)) == 0


def test_of_this_machine(tmp_path: Path) -> None:
    """The directory need not be there yet; what is told of memory and CPUs is what the kernel says."""
    found = read_machine(Settings(state_dir=tmp_path / "not" / "yet"), "cgroupfs")
    file_system = os.statvfs(tmp_path)
    total_kib = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.memory_bytes == int(total_kib) << 10
    assert found.storage_bytes == file_system.f_blocks * file_system.f_frsize
    first_port = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    resources = node_resources(found, NOTHING_RESERVED)
    assert resources.unprivileged_port_start == first_port
    assert parse_quantity(resources.allocatable["memory"]) == found.memory_bytes


def test_a_process_that_may_use_one_cpu_has_one_to_give(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert read_machine(Settings(state_dir=tmp_path), "cgroupfs").cpus == 1
    finally:
        os.sched_setaffinity(0, before)
