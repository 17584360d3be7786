"""The Node of this host in a cluster: made, found again, kept, cordoned, deleted, without a server for a while."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.scheduling import Taint
from ipc.link.wire.cluster_settings import NetworkScope
from tests.integration.workers.cluster.node.conftest import QUICK, Started, pressure
from tests.support.servers.kube_api.failures import Refusal
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.server import KubeApiServer
from workers.cluster.node.csi_node import MIGRATED_ANNOTATION

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
NODE = "/api/v1/nodes/n1"


def status_patch(request: Request) -> bool:
    return (request.verb, request.path) == ("PATCH", f"{NODE}/status")


def renewal(request: Request) -> bool:
    return (request.verb, request.path) == ("PUT", LEASE)


def registration(request: Request) -> bool:
    return (request.verb, request.path) == ("POST", "/api/v1/nodes")


def patched(kind: str, status: str) -> Any:
    """A patch that gives a condition a status."""

    def test(request: Request) -> bool:
        conditions = request.json.get("status", {}).get("conditions", []) if status_patch(request) else []
        return any(each["type"] == kind and each.get("status") == status for each in conditions)

    return test


def has_news(request: Request) -> bool:
    return any("status" in each for each in request.json["status"]["conditions"])


async def test_a_new_node_has_everything_at_once(server: KubeApiServer, started: Started) -> None:
    settings = msgspec.structs.replace(
        QUICK, taints=(Taint(key="a", effect="NoSchedule"),), provider_id="x://1", network_scope=NetworkScope.NODE
    )
    async with started(settings) as node:
        await server.asked(registration)
        await node.keeper.synced.wait()
        await server.asked(renewal)
    made = server.store.get("nodes", "", "n1")
    labels = made["metadata"]["labels"]
    assert labels.items() >= {"disk": "ssd", "kubernetes.io/hostname": "n1", "kubernetes.io/os": "linux"}.items()
    assert made["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"] == "true"
    assert {"key": "a", "effect": "NoSchedule"} in made["spec"]["taints"]
    assert made["spec"]["providerID"] == "x://1"
    status = made["status"]
    kinds = ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert [each["type"] for each in status["conditions"]] == kinds
    assert [each["status"] for each in status["conditions"]] == ["False"] * 4 + ["True"]
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "192.0.2.1"},
        {"type": "Hostname", "address": "n1"},
    ]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["nodeInfo"]["containerRuntimeVersion"] == "podman://5.0.0"
    assert status["images"] == [{"names": ["localhost/a:1"], "sizeBytes": 7}]
    assert status["capacity"]["ephemeral-storage"] == "10Gi"
    assert "ExtendWebSocketsToKubelet" in status["declaredFeatures"]
    lease = server.store.get("leases", "kube-node-lease", "n1")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert lease["spec"]["holderIdentity"] == "n1"


async def test_a_node_is_registered_once_podman_has_answered(server: KubeApiServer, started: Started) -> None:
    async with started(runtime_healthy=False) as node:
        await node.keeper.synced.wait()
        assert not any(map(registration, server.requests))
        node.take()
        await server.asked(registration)


async def test_a_status_without_a_change_is_not_sent(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal, times=4)
        assert len([request for request in server.requests if status_patch(request)]) <= 1, "the first heartbeat"
        node.take(conditions=(pressure("MemoryPressure"),))
        (patch,) = await server.asked(patched("MemoryPressure", "True"))
        changed = [each["type"] for each in patch.json["status"]["conditions"] if "status" in each]
        assert changed == ["MemoryPressure"]
        assert patch.content_type == "application/strategic-merge-patch+json"
        node.take(runtime_healthy=False, runtime_message="no answer")
        await server.asked(patched("Ready", "False"))
    ready = server.store.get("nodes", "", "n1")["status"]["conditions"][-1]
    assert (ready["type"], ready["reason"], ready["message"]) == ("Ready", "KubeletNotReady", "no answer")


async def test_a_node_that_can_give_pods_no_network_is_not_ready(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal)
        node.take(network_problem="no pasta")
        await server.asked(patched("Ready", "False"))
    ready = server.store.get("nodes", "", "n1")["status"]["conditions"][-1]
    assert (ready["type"], ready["reason"], ready["message"]) == ("Ready", "KubeletNotReady", "no pasta")


async def test_heartbeats_go_when_the_period_is_over(server: KubeApiServer, started: Started) -> None:
    async with started(msgspec.structs.replace(QUICK, status_report_s=0.2, network_scope=NetworkScope.CLUSTER)):
        (patch,) = await server.asked(lambda request: status_patch(request) and not has_news(request))
    conditions = patch.json["status"]["conditions"]
    assert len(conditions) == 4
    assert all(set(each) <= {"type", "lastHeartbeatTime"} for each in conditions)


async def test_a_changed_address_replaces_the_list(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal)
        node.board.record_host_ips(("192.0.2.9",))
        await server.asked(lambda request: status_patch(request) and "addresses" in request.json["status"])
    addresses = server.store.get("nodes", "", "n1")["status"]["addresses"]
    assert [each["address"] for each in addresses] == ["192.0.2.9", "n1"]


async def test_a_stated_address_that_the_host_lacks_changes_nothing(server: KubeApiServer, started: Started) -> None:
    async with started(msgspec.structs.replace(QUICK, node_ips=("203.0.113.77",))):
        await server.asked(renewal)
    assert "addresses" not in server.store.get("nodes", "", "n1")["status"]


async def test_a_node_that_is_there_keeps_what_others_gave_it(server: KubeApiServer, started: Started) -> None:
    server.store.create(
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": "n1", "labels": {"mine": "yes", "kubernetes.io/os": "other"}},
            "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"a.b/c": "3"},
                "conditions": [{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": None}],
            },
        }
    )
    async with started():
        await server.asked(patched("Ready", "True"))
        await server.asked(renewal)
    node = server.store.get("nodes", "", "n1")
    assert node["metadata"]["labels"].items() >= {"mine": "yes", "kubernetes.io/os": "linux"}.items()
    assert "disk" not in node["metadata"]["labels"], "labels of the configuration are for the first registration"
    assert node["spec"]["taints"] == [{"key": "theirs", "effect": "NoSchedule"}]
    assert node["status"]["capacity"]["a.b/c"] == "0"


async def test_who_may_not_register_waits_for_the_node(server: KubeApiServer, started: Started) -> None:
    async with started(msgspec.structs.replace(QUICK, register_node=False)):
        await server.asked(lambda request: request.path == NODE and request.code == 404)
        server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}, "status": {}})
        await server.asked(patched("Ready", "True"))
    assert not [request for request in server.requests if request.verb == "POST" and "nodes" in request.path]


async def test_registration_goes_on_until_the_server_takes_it(server: KubeApiServer, started: Started) -> None:
    server.faults.answer(500, "POST", "/api/v1/nodes$", times=2)
    server.faults.drop("POST", "/api/v1/nodes$")
    async with started():
        await server.asked(renewal)
    assert server.store.get("nodes", "", "n1")["metadata"]["name"] == "n1"


async def test_a_cordon_is_an_event_and_no_more(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal)
        for unschedulable in (True, False):
            found = server.store.get("nodes", "", "n1")
            server.store.update({**found, "spec": {**found["spec"], "unschedulable": unschedulable}})
            await server.asked(renewal, times=len([each for each in server.requests if renewal(each)]) + 1)
        assert [event.reason for event in node.events] == ["NodeNotSchedulable", "NodeSchedulable"]
        assert node.seen[-1].spec.unschedulable is False


async def test_a_node_that_is_being_deleted_is_told_once_and_keeps_its_pods(
    server: KubeApiServer, started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    """A finalizer holds it: lease and status go on until it is gone."""
    words = "node n1 is being deleted in the cluster; its pods run on until they are deleted"
    async with started() as node:
        await server.asked(renewal)
        found = server.store.get("nodes", "", "n1")
        found["metadata"] |= {"deletionTimestamp": "2026-11-26T10:00:00Z", "finalizers": ["example.com/hold"]}
        server.store.update(found)
        for _ in range(2):
            await server.asked(renewal, times=len([each for each in server.requests if renewal(each)]) + 1)
        assert caplog.text.count(words) == 1
        assert node.events == []
        assert server.store.get("nodes", "", "n1")["status"]["conditions"]


async def test_a_deleted_node_is_not_made_again(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal)
        server.store.delete("nodes", "", "n1")
        await server.asked(lambda request: request.path == NODE and request.verb == "GET" and request.code == 404)
        assert node.keeper.node is None
        with pytest.raises(Refusal):
            server.store.get("nodes", "", "n1")
    async with started():
        await server.asked(lambda request: request.verb == "POST" and request.path == "/api/v1/nodes", times=2)


async def test_a_node_that_an_older_backup_lacks_is_made_again(server: KubeApiServer, started: Started) -> None:
    """Nobody has deleted it. Its lease is not there either."""
    before = server.store.revision
    async with started() as node:
        await server.asked(renewal)
        uid = server.store.get("nodes", "", "n1")["metadata"]["uid"]
        server.faults.restore(before)
        made = await server.asked(
            lambda request: (request.verb, request.path, request.code) == ("POST", "/api/v1/nodes", 201), times=2
        )
        assert made[-1].json["metadata"]["name"] == "n1"
        renewed = len(server.requests)
        await server.asked(lambda request: renewal(request) and request in server.requests[renewed:])
        assert server.store.get("nodes", "", "n1")["metadata"]["uid"] != uid
        assert node.keeper.node is not None


async def test_a_conflict_reads_the_lease_again(server: KubeApiServer, started: Started) -> None:
    async with started():
        await server.asked(renewal)
        lease = server.store.get("leases", "kube-node-lease", "n1")
        server.store.update({**lease, "spec": {**lease["spec"], "leaseTransitions": 3}})
        (refused,) = await server.asked(lambda request: renewal(request) and request.code == 409)
        await server.asked(lambda request: renewal(request) and request.at > refused.at)
    assert server.store.get("leases", "kube-node-lease", "n1")["spec"]["leaseTransitions"] == 3


async def test_after_a_server_was_away_everything_goes_on(server: KubeApiServer, started: Started) -> None:
    async with started() as node:
        await server.asked(renewal)
        await server.stop()
        node.take(conditions=(pressure("DiskPressure"),))
        await server.start()
        before = len(server.requests)
        await server.asked(patched("DiskPressure", "True"))
        await server.asked(lambda request: renewal(request) and server.requests.index(request) >= before)
    assert (
        len([request for request in server.requests if request.verb == "POST" and request.path == "/api/v1/nodes"]) == 1
    )


async def test_two_nodes_of_one_name_share_the_node(server: KubeApiServer, started: Started) -> None:
    """Nobody can tell them apart: both renew the lease, the status is that of whoever spoke last."""
    async with started(), started() as second:
        await server.asked(renewal, times=4)
        second.board.record_host_ips(("192.0.2.2",))
        await server.asked(lambda request: status_patch(request) and "192.0.2.2" in request.body.decode())
    assert len(server.store.all("nodes")) == 1
    assert len(server.store.all("leases")) == 1


async def test_the_node_is_asked_for_when_a_pod_wants_labels_that_the_watch_has_not_told(
    server: KubeApiServer, started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    async with started() as node:
        await server.asked(renewal)
        asked = len([request for request in server.requests if (request.verb, request.path) == ("GET", NODE)])
        await node.keeper.refresh()
        assert len([request for request in server.requests if (request.verb, request.path) == ("GET", NODE)]) > asked
        assert node.seen[-1].metadata.labels["disk"] == "ssd"
        server.faults.answer(403, "GET", f"{NODE}$", times=99)
        with caplog.at_level(logging.WARNING):
            await node.keeper.refresh()
        assert "the Node cannot be read anew" in caplog.text


async def test_a_csi_node_without_drivers_belongs_to_the_node_and_is_made_once(
    server: KubeApiServer, started: Started
) -> None:
    path = "/apis/storage.k8s.io/v1/csinodes"
    server.faults.answer(500, "POST", f"{path}$", times=1)

    def makes(request: Request) -> bool:
        return (request.verb, request.path) == ("POST", path)

    async with started():
        await server.asked(makes, times=2)
        made = server.store.get("csinodes", "", "n1")
        node = server.store.get("nodes", "", "n1")
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
    ]
    assert made["metadata"]["annotations"][MIGRATED_ANNOTATION].startswith("kubernetes.io/aws-ebs,")
    assert not made["spec"]["drivers"]
    async with started():
        await server.asked(lambda request: (request.verb, request.path) == ("GET", f"{path}/n1"), times=3)
        await server.asked(renewal, times=4)
    assert len([request for request in server.requests if makes(request)]) == 2
