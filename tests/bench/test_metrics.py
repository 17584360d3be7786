"""CPU time of a scrape of three hundred pods, each path in both formats, by the API server's own handlers."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

import msgspec
import pytest

from ipc.host.clock import monotonic
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.messages.api_server import PodChanged
from ipc.link.metrics import kubelet
from ipc.link.metrics.model import Endpoint
from ipc.link.shm.metric_cells import METERS
from tests.support.api_server import SLOT, STARTED, agent_changed, api_server, pod_changed
from workers.statsapi.values import (
    ContainerSample,
    Cpu,
    Interface,
    Memory,
    Network,
    NodeSample,
    PodSample,
    Processes,
    Snapshot,
    Source,
    encode_snapshot,
)

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

PODS: Final = 300
REPEATS: Final = 5
BUDGET_S: Final = 0.05
ACCEPT: Final = {"text": "text/plain", "openmetrics": "application/openmetrics-text; version=1.0.0"}


def cpu_s() -> float:
    """CPU time of this process, its threads too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pod(number: int) -> PodChanged:
    """A pod with one container that is probed."""
    name = f"web-{number:03}"
    changed = pod_changed(number + 1, name)
    probe = {"httpGet": {"port": 80}}
    spec = {"containers": [{"name": "app", "image": "busybox", "livenessProbe": probe}]}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return PodChanged(resource_version=number + 1, pod=decode_pod(manifest), status=changed.status, source="file")


def snapshot() -> Snapshot:
    cpu = Cpu(source=Source.CGROUP, time=STARTED, usage_ns=10**9, user_ns=10**8, system_ns=10**8, nano_cores=5)
    sizes = dict.fromkeys(("usage", "working_set", "rss", "cache", "mapped_file", "swap", "page_faults"), 12345)
    memory = msgspec.structs.replace(Memory(source=Source.CGROUP, time=STARTED), **sizes)
    counts = dict.fromkeys(
        ("rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "tx_bytes", "tx_packets", "tx_errors", "tx_dropped"), 7
    )
    network = Network(time=STARTED, interfaces=(Interface(name="eth0", **counts),))

    def container(name: str) -> ContainerSample:
        processes = Processes(source=Source.CGROUP, count=3, threads=4)
        return ContainerSample(
            id="c0ffee" * 10,
            name=name,
            image="busybox",
            started_at=STARTED,
            cpu=cpu,
            memory=memory,
            processes=processes,
        )

    pods = tuple(
        PodSample(
            uid=f"uid-web-{number:03}",
            name=f"web-{number:03}",
            namespace="default",
            containers=(container("app"),),
            infra=container("POD"),
            cpu=cpu,
            memory=memory,
            network=network,
        )
        for number in range(PODS)
    )
    return Snapshot(time=STARTED, mono=monotonic(), number=1, node=NodeSample(name="node-1", cpu=cpu), pods=pods)


async def test_a_scrape_of_three_hundred_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken: dict[str, float] = {}
    async with api_server(tmp_path, pod_rows=PODS) as master:
        METERS.attach(master.board.metrics, SLOT)
        master.feed(agent_changed(pid=os.getpid()))
        master.ready(*map(pod, range(PODS)))
        for operation in dict.fromkeys(kubelet.RUNTIME_OPERATIONS.values()):
            METERS.histogram(kubelet.RUNTIME_OPERATIONS_DURATION, operation).observe(0.1)
        for row in range(PODS):
            master.board.probes.count(row, f"uid-web-{row:03}", "app", ProbeType.LIVENESS, "successful", 0.01)
        statistics = master.board.statistics
        statistics.publish(monotonic(), encode_snapshot(snapshot(), statistics.capacity))
        for endpoint in Endpoint:
            for name, accept in ACCEPT.items():
                costs, size = [], 0
                for _ in range(REPEATS):
                    began = cpu_s()
                    async with master.http.get(endpoint.value, headers={"Accept": accept}) as answer:
                        size = len(await answer.read())
                    costs.append(cpu_s() - began)
                taken[f"{endpoint.value} {name} {size} bytes"] = min(costs)
    METERS.detach()
    with capsys.disabled():
        for name, cost in taken.items():
            print(f"\n{cost * 1000:6.1f} ms {name}", end="")
        print()
    assert {name: cost for name, cost in taken.items() if cost > BUDGET_S} == {}
