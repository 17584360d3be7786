"""Nothing of statistics is in a process that nobody asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ipc.link.shm.statistics import SNAPSHOT_BYTES, SNAPSHOTS, StatisticsBuffer

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

IMPORTS = """
import sys
import workers.node_worker, workers.pod_worker
ROOMS = ("workers.stats", "ipc.k8s.nodestatus", "workers.nodestatus")
print(*sorted(name for name in sys.modules if name.startswith(ROOMS)))
"""
LIGHT = {"workers.stats", "workers.stats.housekeeping", "workers.stats.targets"}
OF_MESSAGES = {"ipc.k8s.nodestatus", "ipc.k8s.nodestatus.node"}
"""The Node, as the master tells it to the API server and a cluster: its shape is in every process before the fork."""


def test_workers_import_neither_the_collector_nor_its_types() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == LIGHT | OF_MESSAGES


def test_shared_memory_is_untouched_until_it_is_used_and_given_back_afterwards() -> None:
    buffer = StatisticsBuffer()
    before = shared_bytes()
    assert SNAPSHOTS * SNAPSHOT_BYTES > 2**24
    for number in range(SNAPSHOTS):
        buffer.publish(float(number), bytes(1_000_000))
    assert shared_bytes() >= before + SNAPSHOTS * 1_000_000
    buffer.clear()
    assert shared_bytes() < before + 1_000_000


def shared_bytes() -> int:
    """Shared memory of this process that is in memory (RssShmem)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssShmem:"))
    return int(line.split()[1]) * 1024
