"""The summary API: what is known is told under upstream's names, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec

from workers.statsapi import values
from workers.statsapi.summary import summary
from workers.statsapi.values import Source

T = 1_800_000_000.0
STALL = values.Stall(total_us=3, avg10=1.0, avg60=0.5, avg300=0.25)
PRESSURE = values.Pressure(some=STALL, full=STALL)
CPU = values.Cpu(source=Source.CGROUP, time=T, usage_ns=9, nano_cores=4, pressure=PRESSURE)
MEMORY = values.Memory(
    source=Source.CGROUP, time=T, usage=10, working_set=7, rss=5, swap=1, limit=20, swap_limit=3, page_faults=2
)
FS = values.FileSystem(time=T, path="/x", capacity=100, available=60, used=30, inodes=9, inodes_free=5, inodes_used=4)
INTERFACE = values.Interface(
    name="eth0",
    rx_bytes=1,
    rx_packets=2,
    rx_errors=3,
    rx_dropped=4,
    tx_bytes=5,
    tx_packets=6,
    tx_errors=7,
    tx_dropped=8,
)
NETWORK = values.Network(time=T, interfaces=(INTERFACE,), default="eth0")
CONTAINER = values.ContainerSample(
    id="1", name="main", started_at=T, cpu=CPU, memory=MEMORY, io=values.Io(source=Source.CGROUP, time=T), logs=FS
)
POD = values.PodSample(
    uid="u",
    name="web",
    namespace="default",
    started_at=T,
    containers=(CONTAINER,),
    cpu=CPU,
    memory=MEMORY,
    network=NETWORK,
    processes=values.Processes(source=Source.CONTAINERS, count=3),
    volumes=(
        values.VolumeSample(name="data", plugin="kubernetes.io~empty-dir", fs=FS),
        values.VolumeSample(name="disk", plugin="podman", fs=FS, claim="of-disk"),
    ),
    ephemeral_storage=FS,
)
NODE = values.NodeSample(name="n", started_at=T, cpu=CPU, memory=MEMORY, network=NETWORK, fs=FS)


def answer(snapshot: values.Snapshot, *, only: bool = False) -> Any:
    return msgspec.json.decode(msgspec.json.encode(summary(snapshot, only_cpu_and_memory=only)))


def snapshot(*pods: values.PodSample) -> values.Snapshot:
    return values.Snapshot(time=T, mono=1.0, node=NODE, pods=pods)


def test_a_pod() -> None:
    (pod,) = answer(snapshot(POD))["pods"]
    assert pod["podRef"] == {"name": "web", "namespace": "default", "uid": "u"}
    assert pod["startTime"] == "2027-01-15T08:00:00Z"
    assert pod["process_stats"] == {"process_count": 3}
    assert pod["ephemeral-storage"]["usedBytes"] == 30
    volume, claim = pod["volume"]
    assert (volume["name"], volume["inodesUsed"], "pvcRef" in volume) == ("data", 4, False)
    assert (claim["name"], claim["pvcRef"]) == ("disk", {"name": "of-disk", "namespace": "default"})
    assert pod["network"]["rxBytes"] == 1
    assert pod["network"]["interfaces"] == [{"name": "eth0", "rxBytes": 1, "rxErrors": 3, "txBytes": 5, "txErrors": 7}]


def test_cpu_and_memory() -> None:
    (container,) = answer(snapshot(POD))["pods"][0]["containers"]
    assert container["cpu"]["usageCoreNanoSeconds"] == 9
    assert container["cpu"]["psi"]["some"] == {"total": 3, "avg10": 1.0, "avg60": 0.5, "avg300": 0.25}
    memory = container["memory"]
    assert (memory["availableBytes"], memory["workingSetBytes"], memory["rssBytes"]) == (13, 7, 5)
    assert container["swap"] == {"time": memory["time"], "swapAvailableBytes": 2, "swapUsageBytes": 1}


def test_what_is_not_known_is_absent() -> None:
    bare = values.PodSample(uid="u", name="web", namespace="default", started_at=T)
    (pod,) = answer(snapshot(bare))["pods"]
    assert set(pod) == {"podRef", "startTime", "containers"}
    unlimited = msgspec.structs.replace(MEMORY, limit=None, page_faults=None)
    found = answer(snapshot(msgspec.structs.replace(POD, memory=unlimited)))["pods"][0]["memory"]
    assert {"availableBytes", "pageFaults", "majorPageFaults"}.isdisjoint(found)


def test_a_zero_that_is_known_is_told() -> None:
    idle = msgspec.structs.replace(CPU, nano_cores=0)
    (pod,) = answer(snapshot(msgspec.structs.replace(POD, cpu=idle)))["pods"]
    assert pod["cpu"]["usageNanoCores"] == 0


def test_only_cpu_and_memory() -> None:
    found = answer(snapshot(POD), only=True)
    (pod,) = found["pods"]
    assert set(pod) == {"podRef", "startTime", "containers", "cpu", "memory", "swap"}
    assert set(pod["containers"][0]) == {"name", "startTime", "cpu", "memory", "swap"}
    assert {"fs", "network", "runtime", "rlimit"}.isdisjoint(found["node"])
