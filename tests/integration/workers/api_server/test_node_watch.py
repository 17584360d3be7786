"""The Node as it is watched and selected."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.nodestatus.node import Node, NodeCondition, NodeStatus
from tests.support.api_server import Master, Watch, agent_changed, watching
from workers.api_server.handlers.node_watch import NodeVersions, NodeWatches
from workers.statsapi.values import NodeSample, Snapshot, encode_snapshot

pytestmark = pytest.mark.timeout(60)

NODES = "/api/v1/nodes"
SILENT = msgspec.structs.replace(agent_changed(), runtime_healthy=False, runtime_message="no answer")


async def next_state(watch: Watch) -> tuple[str, str]:
    """Type of the next event that is no bookmark, and the message of the condition Ready."""
    while (event := await watch.next()) is not None:
        if event["type"] != "BOOKMARK":
            (ready,) = [each for each in event["object"]["status"]["conditions"] if each["type"] == "Ready"]
            return event["type"], ready["message"]
    raise AssertionError("the watch has ended")


@pytest.fixture
async def node(master: Master) -> Master:
    """A node whose API server knows everything, while no test waits for statistics."""
    master.ready()
    now, statistics = SystemClock().now(), master.board.statistics
    master.board.record_relist(now.mono)
    snapshot = Snapshot(time=now.wall, mono=now.mono, number=0, node=NodeSample(name="node-1"), pods=())
    statistics.publish(now.mono, encode_snapshot(snapshot, statistics.capacity))
    return master


async def test_a_watch_begins_with_the_node_and_tells_when_it_is_not_ready_any_more(node: Master) -> None:
    async with watching(node, NODES, allowWatchBookmarks="true") as watch:
        assert await next_state(watch) == ("ADDED", "kubelet is posting ready status")
        node.feed(SILENT)
        assert await next_state(watch) == ("MODIFIED", "no answer")
        node.feed(msgspec.structs.replace(agent_changed(), network_problem="no pasta"))
        assert await next_state(watch) == ("MODIFIED", "no pasta")


async def test_who_knows_the_present_version_hears_nothing_and_who_knows_another_is_told(node: Master) -> None:
    _, listed = await node.get(NODES)
    version = listed["metadata"]["resourceVersion"]
    assert listed["items"][0]["metadata"]["resourceVersion"] == version
    async with watching(node, NODES, resourceVersion=version, allowWatchBookmarks="true") as watch:
        event = await watch.next()
        assert event is not None
        assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", version)
    async with watching(node, NODES, resourceVersion="7") as watch:
        assert (await next_state(watch))[0] == "MODIFIED"


async def test_a_watch_ends_in_time(node: Master) -> None:
    async with watching(node, NODES, timeoutSeconds="1") as watch:
        assert await watch.take(1) == [("ADDED", "node-1")]
        assert await watch.next() is None


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ({"fieldSelector": "metadata.name=node-1"}, 1),
        ({"fieldSelector": "metadata.name=other"}, 0),
        ({"labelSelector": "kubernetes.io/os=linux"}, 1),
        ({"labelSelector": "kubernetes.io/os!=linux"}, 0),
    ],
)
async def test_selectors(node: Master, query: dict[str, str], number: int) -> None:
    _, listed = await node.get(NODES, **query)
    assert len(listed["items"]) == number


@pytest.mark.parametrize("query", [{"watch": "maybe"}, {"fieldSelector": "spec.x=1"}, {"resourceVersion": "x"}])
async def test_wrong_queries(node: Master, query: dict[str, str]) -> None:
    assert (await node.get(NODES, **{"watch": "true", **query}))[0] == 400


async def test_a_node_that_has_not_looked_at_podman_for_long_is_not_ready(node: Master) -> None:
    node.board.record_relist(SystemClock().now().mono - 10_000.0)
    _, listed = await node.get(NODES)
    ready = listed["items"][0]["status"]["conditions"][-1]
    assert ready["status"] == "False"
    assert ready["message"].startswith("PLEG is not healthy: pleg was last seen active 2h")


# --- without a server -----------------------------------------------------------------------------------------------


def a_node(heartbeat: str, message: str = "") -> Node:
    ready = NodeCondition(type="Ready", status="True", last_heartbeat_time=heartbeat, message=message)
    return Node(metadata=ObjectMeta(name="n"), status=NodeStatus(conditions=(ready,)))


def test_a_heartbeat_is_no_change() -> None:
    versions = NodeVersions(SystemClock())
    first, second, third = (versions.numbered(node) for node in (a_node("1"), a_node("2"), a_node("2", "new")))
    assert first.metadata.resource_version == second.metadata.resource_version
    assert int(third.metadata.resource_version) > int(second.metadata.resource_version)


async def test_however_many_watch_the_node_is_put_together_once() -> None:
    made = 0

    async def make() -> Node:
        nonlocal made
        made += 1
        return a_node("1")

    async def ignore(_: bytes) -> None:
        pass

    watches = NodeWatches(make, lambda: True, SystemClock())
    streams = [
        watches.stream(ignore, is_wanted=lambda _: True, shown=lambda node: node, seen="", bookmarks=False, timeout_s=1)
        for _ in range(5)
    ]
    await asyncio.gather(*streams)
    assert made == 1
