"""What the node has."""

from __future__ import annotations

import os
from pathlib import Path

from ipc.api.quantity import parse_quantity
from supervisor.admission.node_resources import Machine, node_resources, read_machine


def test_quantities_as_kubernetes_writes_them() -> None:
    found = node_resources(Machine(cpus=2, memory_bytes=4_051_288 << 10, storage_bytes=64 << 30))
    assert found.allocatable == {"cpu": "2", "memory": "4051288Ki", "ephemeral-storage": "64Gi"}


def test_of_this_machine(tmp_path: Path) -> None:
    """The directory need not be there yet; what is told of memory and CPUs is what the kernel says."""
    found = read_machine(tmp_path / "not" / "yet")
    file_system = os.statvfs(tmp_path)
    total_kib = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.memory_bytes == int(total_kib) << 10
    assert found.storage_bytes == file_system.f_blocks * file_system.f_frsize
    first_port = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    assert node_resources(found).unprivileged_port_start == first_port
    assert parse_quantity(node_resources(found).allocatable["memory"]) == found.memory_bytes


def test_a_process_that_may_use_one_cpu_has_one_to_give(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert read_machine(tmp_path).cpus == 1
    finally:
        os.sched_setaffinity(0, before)
