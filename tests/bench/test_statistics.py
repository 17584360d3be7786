"""Cost of one housekeeping of 300 pods, in CPU time: real processes, without Podman.

`pytest tests/bench/test_statistics.py -m bench -s`. The pods' containers have no PID namespace and no cgroup of their
own, which is the dearest way: everything is read from /proc, beside as many monitors and network helpers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import SystemClock, thread_cpu
from ipc.shm.statistics import StatisticsBuffer
from ipc.stats.summary import summary
from ipc.stats.values import decode_snapshot, encode_snapshot
from workers.proc.procfs import start_ticks
from workers.stats.collector import Collector
from workers.stats.files import Places
from workers.stats.targets import ContainerTarget, PodTarget
from workers.userns.unshare import Unshare

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

PODS: Final = 300
CONTAINERS: Final = 2
BYSTANDERS: Final = 4
"""Processes beside each pod that are nobody's: three monitors and a network helper."""
ROUNDS: Final = 12
PERIOD_S: Final = 10.0
BUDGET: Final = 0.01
"""Of one CPU."""


@pytest.fixture(scope="module")
def pids() -> Iterator[list[int]]:
    """Sleeping processes, children of one shell that ends with the test."""
    count = PODS * (1 + CONTAINERS + BYSTANDERS)
    script = f"for i in $(seq {count}); do sleep 100000 & echo $!; done; echo; read x; kill $(jobs -p)"
    with subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        yield [int(line) for line in iter(shell.stdout.readline, "\n")]
        shell.communicate("\n")


def targets(pids: list[int], directory: Path) -> tuple[PodTarget, ...]:
    left = iter(pids)

    def one(name: str, number: int) -> ContainerTarget:
        pid = next(left)
        layer = directory / f"layer-{number}-{name}"
        layer.mkdir()
        return ContainerTarget(
            id=f"{number}-{name}",
            name=name,
            attempt=0,
            image="localhost/x",
            pid=pid,
            start_ticks=start_ticks(pid),
            started_at=1.0,
            layer=str(layer),
        )

    return tuple(
        PodTarget(
            uid=f"uid-{number}",
            name=f"pod-{number}",
            namespace="default",
            started_at=1.0,
            host_network=False,
            infra=one("", number),
            containers=tuple(one(f"c{index}", number) for index in range(CONTAINERS)),
        )
        for number in range(PODS)
    )


def test_housekeeping_of_300_pods(pids: list[int], tmp_path: Path) -> None:
    pods = targets(pids, tmp_path)
    for pod in pods:
        (tmp_path / "pods" / pod.uid / "volumes" / "kubernetes.io~empty-dir" / "data").mkdir(parents=True)
    places = Places(node_name="n", pods_dir=str(tmp_path / "pods"), pod_logs_dir=str(tmp_path))
    collector, buffer = Collector(places, SystemClock(), Unshare(), agent_pid=0), StatisticsBuffer()
    costs = []
    for number in range(ROUNDS):
        began = thread_cpu()
        packed = encode_snapshot(collector.collect(pods, number), buffer.capacity)
        costs.append(thread_cpu() - began)
    snapshot = decode_snapshot(packed)
    buffer.publish(1.0, packed)
    began = thread_cpu()
    read = buffer.read()
    assert read is not None
    summary(decode_snapshot(read))
    answer_s = thread_cpu() - began
    assert len(snapshot.pods) == PODS
    assert all(c.cpu is not None for pod in snapshot.pods for c in pod.containers)
    print(f"\nfirst round {costs[0] * 1e3:.1f} ms, then {min(costs[1:]) * 1e3:.1f} to {max(costs[1:]) * 1e3:.1f} ms")
    print(f"snapshot {len(packed)} bytes; a summary of it {answer_s * 1e3:.1f} ms")
    assert sum(costs[1:]) / len(costs[1:]) / PERIOD_S <= BUDGET
