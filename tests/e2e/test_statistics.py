"""Statistics of a real agent's pods, beside a bare reading of their processes and the shapes that upstream answers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.volumes import HERE, claim, ephemeral, mount, volume, wish
from tests.kubelet_tables.runner import SHARED
from tests.support.podman_service import remove_by_force

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

RECORDINGS: Final = SHARED / "kubernetes_wire.json"
BUSY: Final = (
    "busybox mkfifo /never; exec 0<>/never; "
    "while :; do i=0; while [ $((i += 1)) -lt 10000 ]; do :; done; read -t 0.1 nothing; done"
)
"""One process that takes a good part of a CPU. It pauses without a child, as nobody writes to the pipe: whatever runs
beside needs CPUs too."""
CHILDREN: Final = "while :; do sha256sum /bin/busybox > /dev/null; done"
"""Most of its CPU time is that of processes that live for milliseconds."""
TOLERANCE: Final = 0.05
COUNTED_DEADLINE_S: Final = 200.0
"""Directories are counted once a minute."""
TICKS_S: Final = 0.05
"""Clock ticks of a few processes, in seconds."""


def sample(agent: Agent, name: str, container_name: str = "main") -> Json:
    """Newest figures of one container; empty while there are none."""
    for found in agent.get("/stats/summary")["pods"]:
        if found["podRef"]["name"] == name:
            return next((c for c in found["containers"] if c["name"] == container_name), {})
    return {}


def snapshot(agent: Agent, name: str) -> Json:
    """Our own snapshot of that pod."""
    pods = agent.get("/rootlet/v1/statistics")["pods"]
    return next((found for found in pods if found["name"] == name), {})


def first_process(agent: Agent, name: str) -> psutil.Process:
    """First process of the pod's container."""
    pids = [c.pid for c in agent.eye.containers() if c.pod == name]
    return psutil.Process(pids[0])


def bare_cpu_s(process: psutil.Process) -> float:
    """CPU time of a process and its descendants, those that have ended included. One that ends meanwhile is counted
    with its parent, which is read last."""
    times = []
    for one in (*process.children(recursive=True), process):
        with contextlib.suppress(psutil.NoSuchProcess):
            times.append(one.cpu_times())
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def bare_memory(process: psutil.Process) -> int:
    """Resident memory of a process and its descendants."""
    return sum(int(p.memory_info().rss) for p in (process, *process.children(recursive=True)))


@pytest.fixture(scope="module")
def busy(agent: Agent) -> Iterator[str]:
    agent.run(pod("busy", container(script=BUSY)))
    yield "busy"
    agent.remove("busy")


@pytest.mark.parametrize(
    ("name", "script"), [("alone", BUSY), pytest.param("children", CHILDREN, marks=pytest.mark.slow)]
)
def test_cpu_time_lies_between_two_bare_readings(agent: Agent, name: str, script: str) -> None:
    """A reading before and one after: nothing about how fast this machine is."""
    agent.run(pod(name, container(script=script)))
    agent.until(lambda: bool(sample(agent, name)), "it is measured")
    process = first_process(agent, name)
    for _ in range(2):
        before_s = bare_cpu_s(process)
        agent.until(functools.partial(_is_newer, agent, name, before_s), "a newer sample")
        told_s = sample(agent, name)["cpu"]["usageCoreNanoSeconds"] / 1e9
        after_s = bare_cpu_s(process)
        assert told_s <= after_s * (1 + TOLERANCE) + TICKS_S
    agent.remove(name)


def _is_newer(agent: Agent, name: str, before_s: float) -> bool:
    told_s = sample(agent, name)["cpu"]["usageCoreNanoSeconds"] / 1e9
    return bool(told_s * (1 + TOLERANCE) + TICKS_S >= before_s)


@pytest.mark.slow
def test_memory_is_that_of_its_processes(agent: Agent) -> None:
    """One process that holds 64 MB and does nothing else: both readings see the same. A cgroup's working set has page
    cache and the kernel's memory besides, which is little."""
    script = (
        f"dd if=/dev/zero of=/tmp/x bs=1M count=1 2>/dev/null; x=$(head -c 64000000 /dev/zero | tr '\\0' x); {STAY}"
    )
    agent.run(pod("full", container(script=script)))
    agent.until(lambda: bool(sample(agent, "full")), "it is measured")
    process = first_process(agent, "full")

    def is_same() -> bool:
        told, bare = sample(agent, "full")["memory"], bare_memory(process)
        readings.append((told, bare))
        both = told["workingSetBytes"], told["rssBytes"]
        return bare > 64_000_000 and all(abs(each - bare) <= TOLERANCE * bare for each in both)

    readings: list[tuple[Json, int]] = []
    with contextlib.suppress(AssertionError):
        agent.until(is_same, "memory as the processes have it")
    assert is_same(), readings[-1]
    agent.remove("full")


def test_every_figure_says_where_it_is_from(agent: Agent, busy: str) -> None:
    agent.until(lambda: bool(snapshot(agent, busy)), "it is measured")
    found = snapshot(agent, busy)
    (main,) = found["containers"]
    assert main["cpu"]["source"] in {"cgroup", "processes"}
    assert main["memory"]["source"] in {"cgroup", "processes"}
    assert main["processes"]["count"] == 1
    assert found["cpu"]["source"] == "containers"
    assert found["network"]["default"]


def test_a_busy_container_has_a_rate_and_an_idle_one_has_less(agent: Agent, busy: str) -> None:
    agent.run(pod("idle"))
    agent.until(lambda: "usageNanoCores" in sample(agent, "idle").get("cpu", {}), "rates")
    rates = {name: sample(agent, name)["cpu"]["usageNanoCores"] for name in (busy, "idle")}
    assert rates["idle"] < rates[busy]
    agent.remove("idle")


def test_counters_go_on_when_the_node_worker_dies(agent: Agent, busy: str) -> None:
    agent.until(lambda: bool(sample(agent, busy)), "it is measured")
    before = sample(agent, busy)["cpu"]["usageCoreNanoSeconds"]
    agent.kill_and_recover("node")
    agent.until(lambda: bool(sample(agent, busy)), "it is measured again")
    assert sample(agent, busy)["cpu"]["usageCoreNanoSeconds"] >= before


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_files_of_a_pod_are_counted(agent: Agent) -> None:
    """Bytes of an init container are there when the pod is first looked at; if not, it is counted again."""
    mounted: Json = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    writes = container("writes", "head -c 3000000 /dev/zero > /data/x", **mounted)
    agent.run(pod("files", container(**mounted), initContainers=[writes], volumes=[{"name": "data", "emptyDir": {}}]))

    def is_counted() -> bool:
        pods = agent.get("/stats/summary")["pods"]
        found: Json = next((p for p in pods if p["podRef"]["name"] == "files"), {})
        volumes = {v["name"]: v.get("usedBytes", 0) for v in found.get("volume", ())}
        whole = found.get("ephemeral-storage", {}).get("usedBytes", 0)
        return bool(volumes.get("data", 0) >= 3_000_000 and whole >= volumes["data"])

    agent.until(is_counted, "the volume's size", COUNTED_DEADLINE_S)
    agent.remove("files")


WRITTEN: Final = 5 << 20
"""Bytes in each volume of a pod with claims."""


@pytest.fixture
def claiming(agent: Agent) -> Iterator[Path]:
    """A pod that has written to a volume of each kind; where its local volume is."""
    podman_claim = f"{agent.instance}-stats"
    with tempfile.TemporaryDirectory(prefix="rootlet-stats-", dir="/tmp") as directory:
        local, host = Path(directory, "local"), Path(directory, "host")
        volumes = [claim("local", "stats-local"), claim("host", "stats-host"), claim("podman", podman_claim)]
        volumes.append(ephemeral("scratch"))
        for path in (local, host):
            path.mkdir()
        agent.write(
            volume("stats-pv-local", local={"path": str(local)}, nodeAffinity=HERE, storageClassName="stats-a"),
            volume("stats-pv-host", hostPath={"path": str(host)}, storageClassName="stats-b"),
            wish("stats-local", storageClassName="stats-a"),
            wish("stats-host", storageClassName="stats-b"),
        )
        mounts = [mount(each["name"], f"/{each['name']}") for each in volumes]
        script = " && ".join(f"head -c {WRITTEN} /dev/zero > {each['mountPath']}/x" for each in mounts)
        writes = container("writes", script, volumeMounts=mounts)
        agent.run(pod("claiming", container(volumeMounts=mounts), initContainers=[writes], volumes=volumes))
        yield local
        agent.remove("claiming", "stats-local", "stats-host", "stats-pv-local", "stats-pv-host")
        agent.until_gone(["claiming"])
        remove_by_force("volume", podman_claim)


@pytest.mark.timeout(300)
def test_claims_have_statistics_with_their_names(agent: Agent, claiming: Path) -> None:
    """HostPath volumes have none, local ones those of the file system, the others those of the files in them."""
    names = {"local": "stats-local", "podman": f"{agent.instance}-stats", "scratch": "claiming-scratch"}

    def told() -> dict[str, Json]:
        pods = agent.get("/stats/summary")["pods"]
        found: Json = next((each for each in pods if each["podRef"]["name"] == "claiming"), {})
        return {each["pvcRef"]["name"]: each for each in found.get("volume", ()) if "pvcRef" in each}

    def is_counted() -> bool:
        return all(told().get(name, {}).get("usedBytes", 0) >= WRITTEN for name in names.values())

    agent.until(is_counted, "the sizes of the claims", COUNTED_DEADLINE_S)
    found, fs = told(), os.statvfs(claiming)
    assert {each["name"]: name for name, each in found.items()} == names
    assert {each["pvcRef"]["namespace"] for each in found.values()} == {"default"}
    assert found["stats-local"]["capacityBytes"] == fs.f_blocks * fs.f_frsize
    for name in (names["podman"], names["scratch"]):
        assert found[name]["usedBytes"] < 2 * WRITTEN
        assert found[name]["inodesUsed"] == 2
    metrics = agent.cli("get", "--raw", "/metrics").out
    for name, each in found.items():
        labels = f'{{namespace="default",persistentvolumeclaim="{name}"}}'
        sizes = re.findall(rf"^kubelet_volume_stats_used_bytes{re.escape(labels)} (\S+)$", metrics, re.MULTILINE)
        assert [float(size) >= WRITTEN for size in sizes] == [True]
        assert f"kubelet_volume_stats_capacity_bytes{labels}" in metrics, each
    assert "stats-host" not in metrics


def test_container_info_and_machine_info(agent: Agent, busy: str) -> None:
    agent.until(lambda: bool(sample(agent, busy)), "it is measured")
    info = agent.get(f"/stats/{busy}/main")
    assert info["spec"]["labels"]["io.kubernetes.pod.name"] == busy
    assert info["stats"][-1]["cpu"]["usage"]["total"] > 0
    uid = agent.pods()[busy]["metadata"]["uid"]
    assert agent.get(f"/stats/default/{busy}/{uid}/main")["id"] == info["id"]
    machine = agent.get("/spec/")
    assert machine["memory_capacity"] == psutil.virtual_memory().total
    assert machine["num_cores"] == psutil.cpu_count()


def shape(value: Any, path: str = "") -> set[tuple[str, str]]:
    """(path, type) of every leaf."""
    match value:
        case dict():
            return {leaf for key, each in value.items() for leaf in shape(each, f"{path}.{key}")}
        case list():
            return {leaf for each in value for leaf in shape(each, f"{path}[]")}
        case _:
            kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
            return {(path, kind)}


@pytest.mark.parametrize("query", ["", "only_cpu_and_memory=true"])
def test_the_summary_has_the_shape_of_upstreams(agent: Agent, busy: str, query: str) -> None:
    if not RECORDINGS.exists():
        pytest.skip("the recordings of a real kubelet do not lie here")
    records = json.loads(RECORDINGS.read_text())["records"]
    theirs = {
        leaf
        for r in records
        if r.get("path") == "/stats/summary" and r["status"] == 200 and bool(r["query"]) == bool(query)
        for leaf in shape(r["response_body"])
    }
    agent.until(lambda: bool(sample(agent, busy)), "it is measured")
    ours: set[tuple[str, str]] = set()

    def missing() -> set[str]:
        """Asked anew: rates and the sizes of directories come later than the rest."""
        ours.clear()
        ours.update(shape(agent.get(f"/stats/summary?{query}")))
        return {path for path, _ in theirs - ours if not _may_be_missing(path)}

    with contextlib.suppress(AssertionError):
        agent.until(lambda: not missing(), "all of upstream's figures")
    assert missing() == set()
    assert {leaf for leaf in ours - theirs if ".volume[]" not in leaf[0]} == set()


def _may_be_missing(path: str) -> bool:
    """Figures that a host without delegated controllers, or with nothing that uses them, does not have."""
    return (
        ".psi." in path
        or ".io." in path
        or path.endswith(("availableBytes", "swapAvailableBytes", ".imageFs.inodesUsed"))
        or path.startswith(".node.runtime.containerFs.")
        or path == ".node.systemContainers[].startTime"
    )


NOT_OF_A_NODE_OF_ITS_OWN: Final = (
    ".metadata.annotations.",
    ".metadata.uid",
    ".metadata.labels.beta.kubernetes.io/",
    ".metadata.labels.wire",
    ".spec.",
    ".status.daemonEndpoints.",
    ".status.declaredFeatures[]",
    ".status.features.",
    ".status.nodeInfo.kubeProxyVersion",
    ".status.nodeInfo.systemUUID",
    ".status.runtimeHandlers[].",
    ".status.capacity.hugepages",
    ".status.allocatable.hugepages",
)
"""A cluster's, a server's that is off here, root's to read, or told by the table of fields."""


def test_the_node_has_the_shape_of_upstreams(agent: Agent, busy: str) -> None:
    """But for an image without a name, of which the recorded one is null."""
    if not RECORDINGS.exists():
        pytest.skip("the recordings of a real kubelet do not lie here")
    recorded = next(
        record["response_body"]
        for record in json.loads(RECORDINGS.read_text())["records"]
        if record["scene"] == "kubectl/describe-node" and record["path"] == "/api/v1/nodes/node1"
    )
    agent.until(lambda: bool(sample(agent, busy)), "it is measured")
    theirs = {leaf for leaf in shape(recorded) if leaf[1] != "NoneType"}
    ours = shape(agent.get("/api/v1/nodes/e2e"))
    assert {path for path, _ in theirs - ours if not path.startswith(NOT_OF_A_NODE_OF_ITS_OWN)} == set()
    newer = {".status.nodeInfo.swap.capacity", ".status.nodeInfo.runningInUserNamespace"}
    assert {path for path, _ in ours - theirs} <= newer


def lines_of(agent: Agent, *arguments: str) -> list[list[str]]:
    done = agent.cli(*arguments)
    assert done.code == 0, done.err
    return [line.split() for line in done.out.splitlines()]


def test_top_shows_pods_containers_node_and_workers(agent: Agent, busy: str) -> None:
    agent.until(lambda: "usageNanoCores" in sample(agent, busy).get("cpu", {}), "rates")
    header, *rows = lines_of(agent, "top", "pods", "--sort-by", "cpu")
    assert header == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert rows[0][0] == busy
    assert re.fullmatch(r"[1-9][0-9]*m", rows[0][1])
    header, *rows = lines_of(agent, "top", "pods", busy, "--containers", "-A")
    assert header[:3] == ["NAMESPACE", "POD", "NAME"]
    assert rows[0][:3] == ["default", busy, "main"]
    *_, line, summed = lines_of(agent, "top", "pods", "--sum", "--field-selector", f"metadata.name={busy}")
    assert line == ["________", "________"]
    assert re.fullmatch(r"[1-9][0-9]*m", summed[0])
    header, row = lines_of(agent, "top", "node")
    assert header == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
    assert row[0] == "e2e"
    assert all(cell != "<unknown>" for cell in row)
    rows = lines_of(agent, "top", "workers", "--no-headers")
    assert {"node", "api", "pods-0"} <= {row[0] for row in rows}
    missing = agent.cli("top", "pods", "nope")
    assert (missing.code, "nope" in missing.err) == (1, True)


def test_stats_tells_the_sources(agent: Agent, busy: str) -> None:
    agent.until(lambda: bool(sample(agent, busy)), "it is measured")
    header, row = lines_of(agent, "stats", busy)
    assert len(row) == len(header) - 1, "WORKING SET is two words"
    assert set(row[-1].split(",")) <= {"cgroup", "processes"}
    document = json.loads(agent.cli("stats", busy, "-o", "json").out)
    assert [pod["name"] for pod in document["pods"]] == [busy]


def test_a_live_view_goes_on(agent: Agent, busy: str) -> None:
    with agent.following("top", "pods", busy, "--no-headers", "-w") as process:
        assert process.stdout is not None
        assert [process.stdout.readline().split()[0] for _ in range(2)] == [busy, busy]


def test_a_description_shows_use_beside_requests(agent: Agent) -> None:
    requests = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    agent.run(pod("asking", container(resources=requests)))

    def use() -> list[str]:
        described = agent.describe("asking")
        assert "Usage:" in described
        return described.partition("Usage:")[2].split()[:4]

    agent.until(lambda: "<unknown>" not in use(), "its use is known")
    titles, figures = use()[::2], use()[1::2]
    assert titles == ["cpu:", "memory:"]
    assert re.fullmatch(r"[0-9]+m", figures[0])
    assert re.fullmatch(r"[0-9]+Mi", figures[1])
    agent.remove("asking")


def test_the_node_is_shown_listed_and_described(agent: Agent, busy: str) -> None:
    header, row = lines_of(agent, "get", "nodes")
    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row[:2] == ["e2e", "Ready"]
    node = json.loads(agent.cli("get", "node", "e2e", "-o", "json").out)
    assert node["kind"] == "Node"
    assert node["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
    assert node["status"]["capacity"]["pods"] == "500"
    assert node["status"]["conditions"][-1]["type"] == "Ready"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("podman://")
    assert any("rootlet-test" in name for image in node["status"]["images"] for name in image.get("names", ()))
    described = agent.cli("describe", "node").out
    for part in ("Conditions:", "Capacity:", "Allocatable:", "System Info:", "Allocated resources:", "Images:", busy):
        assert part in described
    with agent.following("get", "nodes", "-w", "--no-headers") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["e2e", "Ready"]
    missing = agent.cli("get", "node", "other")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): nodes "other" not found\n')
    other = agent.cli("describe", "node", "other")
    assert (other.code, other.err) == (1, 'Error from server (NotFound): nodes "other" not found\n')
