"""The Node of a cluster as an agent with real Podman tells it, events of its pods, and a second life of the agent."""

from __future__ import annotations

from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import NODE, Cluster
from tests.e2e.manifests import Json, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

EVENTS: Final = "/api/v1/namespaces/default/events"


def the_node(cluster: Cluster) -> Json:
    found: list[Json] = cluster.do(lambda server: server.store.all("nodes"))
    return found[0] if found else {}


def conditions(cluster: Cluster) -> dict[str, str]:
    return {each["type"]: each["status"] for each in the_node(cluster).get("status", {}).get("conditions", ())}


def counts(cluster: Cluster, kind: str) -> dict[str, int]:
    """Reason to how often an event of it was seen."""
    events: list[Json] = cluster.do(lambda server: server.store.all("events"))
    return {each["reason"]: each["count"] for each in events if each["involvedObject"]["kind"] == kind}


def test_the_node_says_what_the_host_is(cluster: Cluster, node: Agent) -> None:
    node.until(lambda: conditions(cluster).get("Ready") == "True", "the Node is ready")
    found = the_node(cluster)
    status = found["status"]
    assert status["nodeInfo"]["containerRuntimeVersion"].startswith("podman://")
    assert status["nodeInfo"]["bootID"]
    assert int(status["capacity"]["cpu"]) > 0
    assert {"memory", "ephemeral-storage", "pods"} <= set(status["allocatable"])
    node.until(lambda: the_node(cluster)["status"].get("images"), "Podman's images are told, once it has a service")
    assert {kind for kind, state in conditions(cluster).items() if state == "True"} <= {"Ready", "DiskPressure"}
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == NODE


def test_events_of_pods_and_node_reach_the_cluster(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("told"))
    node.until(lambda: "Started" in counts(cluster, "Pod"), "the event of the container's start is there")
    assert {"Pulled", "Created", "Started"} <= set(counts(cluster, "Pod"))
    assert counts(cluster, "Node")["Starting"] == 1


def test_the_next_agent_finds_its_node_and_sends_no_event_again(cluster: Cluster, node: Agent) -> None:
    uid, before = the_node(cluster)["metadata"]["uid"], counts(cluster, "Pod")
    node.stop()
    node.start()
    node.until(lambda: counts(cluster, "Node")["Starting"] == 2, "the next start is the same event once more")
    node.until(lambda: conditions(cluster).get("Ready") == "True", "the Node is ready")
    assert the_node(cluster)["metadata"]["uid"] == uid
    assert counts(cluster, "Pod") == before
    made = cluster.requests(lambda request: request.path == EVENTS and request.code == 201)
    names = [each.json["metadata"]["name"] for each in made]
    assert len(names) == len(set(names))
