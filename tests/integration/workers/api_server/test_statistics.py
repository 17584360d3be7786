"""Statistics and the node by HTTP, on snapshots that a test publishes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import psutil
import pytest

from ipc.host.clock import monotonic, wall
from tests.support.api_server import Master, agent_changed
from workers.statsapi import values
from workers.statsapi.values import Source, encode_snapshot

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def measured(master: Master) -> Master:
    """Three snapshots of one pod."""
    for number in range(3):
        cpu = values.Cpu(source=Source.PROCESSES, time=wall(), usage_ns=number, nano_cores=5)
        main = values.ContainerSample(id="c1", name="main", started_at=1.0, cpu=cpu)
        pod = values.PodSample(uid="u", name="web", namespace="default", started_at=1.0, containers=(main,), cpu=cpu)
        node = values.NodeSample(name="node-1", started_at=1.0, cpu=cpu)
        now = monotonic()
        snapshot = values.Snapshot(time=wall(), mono=now, number=number, node=node, pods=(pod,))
        statistics = master.board.statistics
        statistics.publish(now, encode_snapshot(snapshot, statistics.capacity))
    return master


async def test_a_request_asks_the_collector(master: Master) -> None:
    assert master.board.statistics.asked_at == 0.0
    code, status = await master.get("/rootlet/v1/statistics", timeoutSeconds="1")
    assert (code, status["reason"]) == (503, "ServiceUnavailable")
    assert master.board.statistics.asked_at > 0.0


async def test_the_summary(measured: Master) -> None:
    code, summary = await measured.get("/stats/summary")
    assert code == 200
    assert summary["pods"][0]["containers"][0]["cpu"]["usageCoreNanoSeconds"] == 2
    async with measured.http.get("/stats/summary", params={"only_cpu_and_memory": "maybe"}) as response:
        assert response.status == 400


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/stats/web/main", 200),
        ("/stats/default/web/u/main", 200),
        ("/stats/other/web/u/main", 404),
        ("/stats/default/web/other/main", 404),
        ("/stats/web/other", 404),
        ("/stats/nope/main", 404),
    ],
)
async def test_containers_are_found_by_name_and_uid(measured: Master, path: str, code: int) -> None:
    async with measured.http.get(path) as response:
        assert response.status == code
        body: Any = await response.json() if code == 200 else {}
    assert code != 200 or [sample["cpu"]["usage"]["total"] for sample in body["stats"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("body", "code", "samples"),
    [
        (b'{"num_stats": 2}', 200, [1, 2]),
        (b'{"num_stats": -1}', 200, [0, 1, 2]),
        (b'{"num_stats": 0}', 200, [2]),
        (b"", 200, [0, 1, 2]),
        (b'{"num_stats": "x"}', 400, []),
        (b"[", 400, []),
    ],
)
async def test_a_request_says_how_many_samples(measured: Master, body: bytes, code: int, samples: list[int]) -> None:
    for path in ("/stats/web/main", "/stats/"):
        async with measured.http.post(path, data=body) as response:
            assert response.status == code
            found: Any = await response.json() if code == 200 else {}
        assert code != 200 or [each["cpu"]["usage"]["total"] for each in found["stats"]] == samples


async def test_the_machine(measured: Master) -> None:
    code, machine = await measured.get("/spec/")
    assert code == 200
    assert machine["memory_capacity"] == psutil.virtual_memory().total


async def test_a_snapshot_tells_sources(measured: Master) -> None:
    _, snapshot = await measured.get("/rootlet/v1/statistics")
    assert snapshot["pods"][0]["containers"][0]["cpu"]["source"] == "processes"


async def test_the_node_without_podman_has_no_images(measured: Master) -> None:
    measured.ready()
    code, nodes = await measured.get("/api/v1/nodes")
    assert code == 200
    (node,) = nodes["items"]
    assert "images" not in node["status"]
    assert node["status"]["capacity"]["pods"] == "110"
    assert (await measured.get("/api/v1/nodes/node-1"))[0] == 200
    code, status = await measured.get("/api/v1/nodes/other")
    assert (code, status["message"]) == (404, 'nodes "other" not found')


async def test_the_node_tells_of_podmans_silence(measured: Master) -> None:
    measured.ready()
    measured.board.record_relist(monotonic())
    ready = await ready_condition(measured)
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
    silent = msgspec.structs.replace(
        agent_changed(), runtime_healthy=False, runtime_message="no answer", runtime_silent_since=5.0
    )
    measured.feed(silent)
    async with asyncio.timeout(30):
        while (ready := await ready_condition(measured))["status"] == "True":
            pass  # the feed is on its way
    assert (ready["reason"], ready["message"]) == ("KubeletNotReady", "no answer")


async def ready_condition(master: Master) -> Any:
    _, node = await master.get("/api/v1/nodes/node-1")
    (ready,) = [condition for condition in node["status"]["conditions"] if condition["type"] == "Ready"]
    return ready
