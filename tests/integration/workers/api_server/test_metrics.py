"""The paths of metrics over the admin socket, read by prometheus-client's parsers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ipc.host.clock import monotonic
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.messages.api_server import PodChanged, WorkerInfo
from ipc.link.metrics import kubelet, rootlet
from ipc.link.shm.metric_cells import METERS
from tests.support.api_server import SLOT, STARTED, Master, agent_changed, pod_changed
from workers.statsapi.values import (
    ContainerSample,
    Cpu,
    FileSystem,
    Interface,
    Memory,
    Network,
    NodeSample,
    PodSample,
    Snapshot,
    Source,
    VolumeSample,
    encode_snapshot,
)

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def attached(master: Master) -> Iterator[None]:
    """This process counts on the agent's board, as its API server would."""
    METERS.attach(master.board.metrics, SLOT)
    yield
    METERS.detach()


async def scrape(master: Master, path: str = "/metrics", accept: str = "") -> Samples:
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    async with master.http.get(path, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == 200, text
    parse: Any = parse_openmetrics if accept else parse_text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def worker(slot: int, name: str, role: str = "pod-worker") -> WorkerInfo:
    return WorkerInfo(
        slot=slot, role=role, name=name, pid=os.getpid(), incarnation=2, state="Running", pods=3, deaths=1
    )


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_what_was_counted_and_what_there_is(master: Master, accept: str) -> None:
    master.feed(agent_changed(worker(SLOT, "api-1", "api-server"), worker(4, "pods-4"), pid=os.getpid()))
    master.ready(pod_changed(1, "web", containers=("app", "side"), waits_for="Worker"))
    METERS.counter(kubelet.STARTED_CONTAINERS, "container").inc(2)
    METERS.histogram(kubelet.POD_START_DURATION).observe(1.5)
    found = await scrape(master, accept=accept)
    assert found["kubelet_started_containers_total", (("container_type", "container"),)] == 2.0
    assert found["kubelet_pod_start_duration_seconds_count", ()] == 1.0
    assert found["kubelet_desired_pods", (("static", "true"),)] == 1.0
    assert found["kubelet_running_containers", (("container_state", "running"),)] == 2.0
    assert found["kubelet_node_name", (("node", "node-1"),)] == 1.0
    assert found["process_start_time_seconds", ()] == STARTED
    assert found["rootlet_podman_up", ()] == 1.0
    assert found["rootlet_pods_held_up", (("reason", "Worker"),)] == 1.0
    labels = (("long_running", "false"), ("method", "GET"), ("path", "metrics"), ("server_type", "admin"))
    assert found["kubelet_http_requests_total", labels] == 1.0
    assert found["kubelet_http_inflight_requests", labels] == 1.0


async def test_a_process_has_series_of_its_own_and_the_ended_count(master: Master) -> None:
    master.ready()
    master.feed(agent_changed(worker(SLOT, "api-1", "api-server"), pid=os.getpid()))
    METERS.counter(rootlet.CPU_OF_ENDED).inc(1000.0)
    METERS.counter(rootlet.LINK_MESSAGES, "sent").inc()
    found = await scrape(master)
    assert found["rootlet_process_cpu_seconds_total", (("worker", "api-1"),)] > 1000.0
    assert 0.0 < found["process_cpu_seconds_total", ()] < 1000.0
    assert found["process_open_fds", ()] > 0.0
    assert found["rootlet_link_messages_total", (("direction", "sent"), ("worker", "api-1"))] >= 1.0
    assert found["rootlet_worker_incarnation", (("worker", "api-1"),)] == 2.0
    assert "rootlet_ended_processes_cpu_seconds_total" not in {name for name, _ in found}


def probed(version: int, name: str) -> PodChanged:
    changed = pod_changed(version, name)
    pod = decode_pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [{"name": "app", "image": "busybox", "livenessProbe": {"exec": {"command": ["true"]}}}]
            },
        }
    )
    return PodChanged(resource_version=version, pod=pod, status=changed.status, source="file")


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_probes_of_the_pods_that_there_are(master: Master, accept: str) -> None:
    master.ready(probed(1, "web"))
    for uid in ("uid-web", "uid-gone"):
        row = 0 if uid == "uid-web" else 1
        master.board.probes.count(row, uid, "app", ProbeType.LIVENESS, "failed", 0.2)
    found = await scrape(master, "/metrics/probes", accept)
    place = (("container", "app"), ("namespace", "default"), ("pod", "web"))
    labels = (*place, ("pod_uid", "uid-web"), ("probe_type", "Liveness"), ("result", "failed"))
    assert found["prober_probe_total", labels] == 1.0
    assert found["prober_probe_duration_seconds_count", (*place, ("probe_type", "Liveness"))] == 1.0
    assert len({labels for name, labels in found if name == "prober_probe_total"}) == 1


async def test_health_checks(master: Master) -> None:
    master.feed(agent_changed(pid=os.getpid()))
    master.ready()
    found = await scrape(master, "/metrics/slis")
    assert found["kubernetes_healthcheck", (("name", "ping"), ("type", "healthz"))] == 1.0
    ping = (("name", "ping"), ("status", "success"), ("type", "healthz"))
    assert (await scrape(master, "/metrics/slis"))["kubernetes_healthchecks_total", ping] == 2.0


def snapshot(now: float) -> Snapshot:
    cpu = Cpu(source=Source.CGROUP, time=STARTED, usage_ns=2_500_000_000)
    memory = Memory(source=Source.CGROUP, time=STARTED, usage=4096, working_set=2048, page_faults=7)
    container = ContainerSample(id="c0ffee", name="app", image="busybox", started_at=STARTED, cpu=cpu, memory=memory)
    received = {"rx_bytes": 1, "rx_packets": 2, "rx_errors": 3, "rx_dropped": 4}
    interface = Interface(name="eth0", **received, tx_bytes=5, tx_packets=6, tx_errors=7, tx_dropped=8)
    fs = FileSystem(time=STARTED, capacity=100, available=60, used=40, inodes=9, inodes_free=5)
    volumes = (
        VolumeSample(name="disk", plugin="podman", fs=fs, claim="data"),
        VolumeSample(name="scratch", plugin="kubernetes.io~empty-dir", fs=fs),
    )
    pod = PodSample(
        uid="uid-web",
        name="web",
        namespace="default",
        containers=(container,),
        cpu=cpu,
        network=Network(time=STARTED, interfaces=(interface,)),
        volumes=volumes,
    )
    other = PodSample(uid="uid-other", name="other", namespace="default", volumes=volumes)
    return Snapshot(time=STARTED, mono=now, number=1, node=NodeSample(name="node-1", cpu=cpu), pods=(pod, other))


def publish(master: Master) -> None:
    statistics, now = master.board.statistics, monotonic()
    statistics.publish(now, encode_snapshot(snapshot(now), statistics.capacity))


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_resource_metrics(master: Master, accept: str) -> None:
    master.ready()
    publish(master)
    found = await scrape(master, "/metrics/resource", accept)
    place = (("container", "app"), ("namespace", "default"), ("pod", "web"))
    assert found["container_cpu_usage_seconds_total", place] == 2.5
    assert found["container_memory_working_set_bytes", place] == 2048.0
    assert found["pod_cpu_usage_seconds_total", place[1:]] == 2.5
    assert found["node_cpu_usage_seconds_total", ()] == 2.5
    assert found["resource_scrape_error", ()] == 0.0
    assert "pod_memory_working_set_bytes" not in {name for name, _ in found}, "it is not known, so it is not 0"


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_cadvisors_metrics(master: Master, accept: str) -> None:
    master.ready()
    publish(master)
    found = {
        (name, dict(labels).get("container")): value
        for (name, labels), value in (await scrape(master, "/metrics/cadvisor", accept)).items()
    }
    assert found["container_cpu_usage_seconds_total", "app"] == 2.5
    assert found["container_memory_usage_bytes", "app"] == 4096.0
    assert found["container_network_transmit_packets_dropped_total", ""] == 8.0
    assert ("container_memory_rss", "app") not in found


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_a_claim_is_told_once_however_many_pods_have_it(master: Master, accept: str) -> None:
    master.ready()
    publish(master)
    found = await scrape(master, accept=accept)
    labels = (("namespace", "default"), ("persistentvolumeclaim", "data"))
    told = {name: value for (name, of), value in found.items() if name.startswith("kubelet_volume_stats_")}
    assert told == {
        "kubelet_volume_stats_capacity_bytes": 100.0,
        "kubelet_volume_stats_available_bytes": 60.0,
        "kubelet_volume_stats_used_bytes": 40.0,
        "kubelet_volume_stats_inodes": 9.0,
        "kubelet_volume_stats_inodes_free": 5.0,
    }, "what is not known is not told"
    assert {of for name, of in found if name in told} == {labels}


async def test_a_request_that_names_families_has_these_alone_and_statistics_only_for_those_that_need_them(
    master: Master,
) -> None:
    master.ready(pod_changed(1, "web"))
    few = await scrape(master, "/metrics?name[]=kubelet_node_name&name[]=kubelet_desired_pods")
    assert {name for name, _ in few} == {"kubelet_node_name", "kubelet_desired_pods"}
    assert master.board.statistics.asked_at == 0.0, "no statistics for them"
    publish(master)
    sizes = await scrape(master, "/metrics?name[]=kubelet_volume_stats_used_bytes")
    assert {name for name, _ in sizes} == {"kubelet_volume_stats_used_bytes"}
    assert master.board.statistics.asked_at > 0.0
    assert master.board.statistics.lasting_at == 0.0, "one snapshot is enough"


async def test_an_answer_is_compressed_on_request(master: Master) -> None:
    master.ready()
    headers = {"Accept-Encoding": "gzip"}
    async with master.http.get("/metrics", headers=headers) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert b"kubelet_node_name" in await answer.read()
