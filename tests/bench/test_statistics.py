"""Cost of one housekeeping of 300 pods, in CPU time: real processes, without Podman.

`pytest tests/bench/test_statistics.py -m bench -s`. The pods' containers have no PID namespace, and there are as many
monitors and network helpers beside. Once they have no cgroups of their own, and all is read from /proc. Then they do,
as files in memory for want of delegated ones: once nothing runs in them, once something runs in all but the pauses'.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import SystemClock, thread_cpu
from ipc.link.shm.statistics import StatisticsBuffer
from workers.eviction.node_pressure import PERIOD_S as PRESSURE_PERIOD_S
from workers.eviction.node_pressure import memory_used
from workers.proc import cgroups
from workers.proc.procfs import start_ticks
from workers.stats.collector import Collector
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.statsapi.summary import summary
from workers.statsapi.values import decode_snapshot, encode_snapshot
from workers.userns.unshare import Unshare

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

PODS: Final = 300
CONTAINERS: Final = 2
BYSTANDERS: Final = 4
"""Processes beside each pod that are nobody's: three monitors and a network helper."""
ROUNDS: Final = 12
PERIOD_S: Final = 12.5
"""From 10 to 15 s."""
BUDGET: Final = 0.01
"""Part of one CPU."""


@pytest.fixture(scope="module")
def pids() -> Iterator[list[int]]:
    """Sleeping processes, children of one shell that ends with the test."""
    count = PODS * (1 + CONTAINERS + BYSTANDERS)
    script = f"for i in $(seq {count}); do sleep 100000 & echo $!; done; echo; read x; kill $(jobs -p)"
    with subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        yield [int(line) for line in iter(shell.stdout.readline, "\n")]
        shell.communicate("\n")


def targets(pids: list[int], directory: Path, count: int = PODS) -> tuple[PodTarget, ...]:
    left = iter(pids)

    def one(name: str, number: int) -> ContainerTarget:
        pid = next(left)
        layer = directory / "overlay" / f"{number}-{name}" / "diff"
        layer.mkdir(parents=True)
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
        for number in range(count)
    )


MEMORY_STAT: Final = (*(f"workingset_of_kind_{number}" for number in range(45)), "anon", "file", "inactive_file")
STALLS: Final = "".join(f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n" for kind in ("some", "full"))
CGROUP: Final = {
    "cpu.stat": "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    "memory.current": "1048576\n",
    "memory.stat": "".join(f"{key} 4096\n" for key in MEMORY_STAT),
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "memory.peak": "2097152\n",
    "memory.max": "max\n",
    "memory.swap.current": "0\n",
    "memory.swap.max": "max\n",
    "io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
    "pids.current": "1\n",
    "cgroup.procs": "1\n",
    **{f"{name}.pressure": STALLS for name in ("cpu", "memory", "io")},
}
"""Files of a cgroup with all controllers."""


def make_cgroups(pods: Sequence[PodTarget], directory: Path) -> None:
    for member in (member for pod in pods for member in pod.members):
        (directory / member.id).mkdir(parents=True)
        for name, text in CGROUP.items():
            (directory / member.id / name).write_text(text)


def run_containers(pods: Sequence[PodTarget], directory: Path, number: int) -> None:
    """All but the infra containers use CPU time."""
    for container in (container for pod in pods for container in pod.containers):
        (directory / container.id / "cpu.stat").write_text(CGROUP["cpu.stat"].replace("5000", str(5000 + number)))


@pytest.mark.parametrize("kind", ["processes", "idle cgroups", "busy cgroups"])
def test_housekeeping_of_300_pods(pids: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    pods, own = targets(pids, tmp_path), Path(tempfile.mkdtemp(dir="/dev/shm"))
    for pod in pods:
        (tmp_path / "pods" / pod.uid / "volumes" / "kubernetes.io~empty-dir" / "data").mkdir(parents=True)
    if kind != "processes":
        make_cgroups(pods, own)
        monkeypatch.setattr(cgroups, "own_cgroup", lambda _, id: str(own / id))
    directories = PodDirectories(pods=str(tmp_path / "pods"), logs=str(tmp_path))
    collector, buffer = Collector("n", directories, SystemClock(), Unshare(), agent_pid=0), StatisticsBuffer()
    costs = []
    for number in range(ROUNDS):
        if kind == "busy cgroups":
            run_containers(pods, own, number)
        began = thread_cpu()
        packed = encode_snapshot(collector.collect(pods, number), buffer.capacity)
        costs.append(thread_cpu() - began)
    shutil.rmtree(own)
    snapshot = decode_snapshot(packed)
    began = thread_cpu()
    buffer.publish(1.0, packed)
    publish_s = thread_cpu() - began
    began = thread_cpu()
    read = buffer.read()
    assert read is not None
    summary(decode_snapshot(read))
    answer_s = thread_cpu() - began
    assert len(snapshot.pods) == PODS
    assert all(c.cpu is not None for pod in snapshot.pods for c in pod.containers)
    least, most, median = min(costs[1:]), max(costs[1:]), statistics.median(costs[1:])
    print(
        f"\n{kind}: first round {costs[0] * 1e3:.1f} ms, then {least * 1e3:.1f} to {most * 1e3:.1f} ms, "
        f"median {median * 1e3:.1f}"
    )
    print(f"snapshot {len(packed)} bytes, published in {publish_s * 1e3:.1f} ms; a summary {answer_s * 1e3:.1f} ms")
    assert median / PERIOD_S <= BUDGET


@pytest.mark.parametrize("count", [60, PODS])
def test_memory_of_all_pods(pids: list[int], tmp_path: Path, count: int) -> None:
    """One reading of allocatableMemory.available where no cgroup says it, as the node worker does it every ten seconds
    (`NodePressure._memory_of_pods`): a round of statistics, decoded and summed up."""
    pods = targets(pids, tmp_path, count)
    directories = PodDirectories(pods=str(tmp_path / "pods"), logs=str(tmp_path))
    collector = Collector("n", directories, SystemClock(), Unshare(), agent_pid=0)
    capacity = StatisticsBuffer().capacity
    costs, used = [], 0
    for number in range(ROUNDS):
        began = thread_cpu()
        used = memory_used(collector.collect_encoded(pods, number, capacity))
        costs.append(thread_cpu() - began)
    assert used > 0
    median = statistics.median(costs[1:])
    print(f"\n{count} pods: first round {costs[0] * 1e3:.1f} ms, then {median * 1e3:.1f} (median)")
    assert median / PRESSURE_PERIOD_S <= BUDGET
