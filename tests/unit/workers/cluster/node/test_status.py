"""Words of the Node: its status from facts, when it goes, and the patch that it goes as."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.scheduling import Taint
from ipc.k8s.nodestatus.node import NodeCondition, NodeStatus
from ipc.link.wire.cluster_settings import ClusterSettings, NetworkScope
from workers.cluster.node.facts import NodeFacts, status_of
from workers.cluster.node.initial_node import ATTACH_DETACH, initial_node
from workers.cluster.node.patch import node_patch
from workers.cluster.node.reconcile import reconciled, with_attach_detach, with_system_labels
from workers.cluster.node.report_schedule import ReportSchedule
from workers.cluster.node.types import MAX_NODE_BYTES, ClusterNode, NodeMeta, decode_node
from workers.nodestatus.machine import NodeLimits
from workers.nodestatus.version import HostVersions
from workers.statsapi.machine_info import MachineInfo

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"
HOST = HostVersions(kernel="6.1", os_image="Debian", operating_system="linux", architecture="amd64")
FACTS = NodeFacts(
    name="n1",
    host=HOST,
    machine=MachineInfo(num_cores=2, memory_capacity=1 << 30, boot_id="b"),
    limits=NodeLimits(max_pods=110, capacity={"ephemeral-storage": "10Gi", "a.b/c": "2"}),
    addresses=("192.0.2.1", "2001:db8::1"),
    port=10250,
    runtime_version="5.0",
    agent_version="0.1.0",
    handlers=("kata",),
)
SETTINGS = ClusterSettings(kubeconfig="", pki_dir="")


def facts(**changes: Any) -> NodeFacts:
    return msgspec.structs.replace(FACTS, **changes)


def conditions(status: NodeStatus) -> dict[str, NodeCondition]:
    return {each.type: each for each in status.conditions}


def node(**changes: Any) -> ClusterNode:
    made = initial_node(FACTS, SETTINGS, NOW)
    return msgspec.structs.replace(made, **changes)


# --- the status -----------------------------------------------------------------------------------------------------


def test_a_transition_is_dated_when_it_happens_and_a_heartbeat_each_time() -> None:
    first = status_of(NodeStatus(), FACTS, NOW)
    second = status_of(first, facts(pressures=frozenset({"DiskPressure"})), LATER)
    assert {each.last_heartbeat_time for each in second.conditions} == {LATER}
    assert conditions(second)["DiskPressure"].last_transition_time == LATER
    assert conditions(second)["Ready"].last_transition_time == NOW


def test_a_scheduler_is_told_that_root_of_a_container_is_no_root() -> None:
    told = msgspec.to_builtins(status_of(NodeStatus(), FACTS, NOW).node_info)
    assert told["runningInUserNamespace"] is True


def test_conditions_of_others_stay_and_ready_is_the_last() -> None:
    theirs = NodeCondition(type="KernelDeadlock", status="False")
    status = status_of(NodeStatus(conditions=(theirs,)), FACTS, NOW)
    assert status.conditions[0] == theirs
    assert status.conditions[-1].type == "Ready"


@pytest.mark.parametrize(
    ("scope", "status", "words"),
    [
        (NetworkScope.NODE, "False", "pods of other nodes do not reach them"),
        (NetworkScope.NONE, "True", "reach nobody"),
    ],
)
def test_how_far_the_network_reaches_is_said(scope: NetworkScope, status: str, words: str) -> None:
    found = conditions(status_of(NodeStatus(), facts(network_scope=scope), NOW))["NetworkUnavailable"]
    assert found.status == status
    assert words in found.message


def test_of_a_network_of_the_operators_nothing_is_said() -> None:
    theirs = NodeCondition(type="NetworkUnavailable", status="True", reason="NoRouteCreated")
    status = status_of(NodeStatus(conditions=(theirs,)), facts(network_scope=NetworkScope.CLUSTER), NOW)
    assert conditions(status)["NetworkUnavailable"] == theirs


def test_errors_make_it_not_ready_in_words() -> None:
    ready = conditions(status_of(NodeStatus(), facts(errors=("a", "b")), NOW))["Ready"]
    assert (ready.status, ready.message) == ("False", "[a, b]")


def test_without_an_address_of_the_hosts_the_old_ones_stay() -> None:
    before = status_of(NodeStatus(), FACTS, NOW)
    assert status_of(before, facts(addresses=None), LATER).addresses == before.addresses


def test_web_sockets_are_declared_with_a_port_alone() -> None:
    assert "ExtendWebSocketsToKubelet" in status_of(NodeStatus(), FACTS, NOW).declared_features
    without = status_of(NodeStatus(), facts(port=0), NOW)
    assert "ExtendWebSocketsToKubelet" not in without.declared_features
    assert without.daemon_endpoints.kubelet_endpoint is None


def test_a_handler_of_the_configuration_promises_nothing() -> None:
    default, kata = status_of(NodeStatus(), FACTS, NOW).runtime_handlers
    assert default.features is not None
    assert (kata.name, kata.features) == ("kata", None)


# --- the Node that is made, and one that is there ---------------------------------------------------------------------


def test_labels_of_the_configuration_go_before_the_kubelets() -> None:
    labels = {"kubernetes.io/hostname": "other", "disk": "ssd"}
    settings = msgspec.structs.replace(SETTINGS, node_labels=labels, taints=(Taint(key="a", effect="NoExecute"),))
    made = initial_node(FACTS, settings, NOW)
    assert made.metadata.labels["kubernetes.io/hostname"] == "other"
    assert made.metadata.labels["beta.kubernetes.io/arch"] == "amd64"
    assert made.spec.taints == (Taint(key="a", effect="NoExecute"),)


def test_a_node_that_is_as_it_should_be_is_left_alone() -> None:
    assert reconciled(node(), node()) is not None
    assert node_patch(node(), reconciled(node(), node())) == {}


def test_devices_of_the_configuration_do_not_vanish_for_a_moment() -> None:
    status = msgspec.structs.replace(node().status, capacity={**node().status.capacity, "a.b/gone": "3"})
    existing = node(status=status)
    got = reconciled(node(), existing).status.capacity
    assert (got["a.b/c"], got["a.b/gone"]) == ("2", "0")


def test_the_annotation_of_volumes_is_set_and_taken_away() -> None:
    bare = node(metadata=NodeMeta(name="n1", annotations={"other": "x"}))
    assert with_attach_detach(node(), bare).metadata.annotations == {"other": "x", ATTACH_DETACH: "true"}
    assert ATTACH_DETACH not in with_attach_detach(bare, node()).metadata.annotations


def test_labels_of_the_system_are_set_again() -> None:
    changed = node(metadata=NodeMeta(name="n1", labels={"kubernetes.io/os": "plan9", "x": "y"}))
    assert with_system_labels(changed, HOST).metadata.labels == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "x": "y",
    }
    assert with_system_labels(node(), HOST) == node()


# --- the patch ------------------------------------------------------------------------------------------------------


def after(status: NodeStatus) -> ClusterNode:
    return node(status=status)


def test_a_heartbeat_is_dates_and_the_order_of_conditions() -> None:
    patch = node_patch(node(), after(status_of(node().status, FACTS, LATER)))
    kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert patch == {
        "status": {
            "$setElementOrder/conditions": [{"type": kind} for kind in kinds],
            "conditions": [{"lastHeartbeatTime": LATER, "type": kind} for kind in kinds],
        }
    }


def test_addresses_are_replaced_as_a_list() -> None:
    patch = node_patch(node(), after(status_of(node().status, facts(addresses=("192.0.2.9",)), NOW)))
    assert patch["status"] == {
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.9"},
            {"type": "Hostname", "address": "n1"},
            {"$patch": "replace"},
        ]
    }


def test_what_is_gone_is_null_and_what_is_the_same_is_left_out() -> None:
    status = msgspec.structs.replace(node().status, capacity={"cpu": "4"}, features=None)
    assert node_patch(node(), after(status))["status"] == {
        "capacity": {"memory": None, "pods": None, "ephemeral-storage": None, "a.b/c": None, "cpu": "4"},
        "features": None,
    }


def test_a_condition_that_is_gone_is_deleted_by_its_type() -> None:
    status = msgspec.structs.replace(node().status, conditions=node().status.conditions[1:])
    assert node_patch(node(), after(status))["status"]["conditions"] == [{"$patch": "delete", "type": "MemoryPressure"}]


def test_the_spec_is_never_patched() -> None:
    changed = node(spec=msgspec.structs.replace(node().spec, unschedulable=True), metadata=NodeMeta(name="n1"))
    assert set(node_patch(node(), changed)) == {"metadata"}


# --- when it goes ---------------------------------------------------------------------------------------------------


def test_after_a_change_the_next_report_is_spread_and_after_that_regular() -> None:
    schedule = ReportSchedule(300.0, lambda: 1.0)
    assert schedule.is_due(0.0)
    schedule.reported(0.0, changed=True)
    assert not schedule.is_due(449.0)
    assert schedule.is_due(450.0)
    schedule.reported(450.0, changed=False)
    assert not schedule.is_due(749.0)
    assert schedule.is_due(750.0)


# --- what a server sends --------------------------------------------------------------------------------------------


def test_nulls_and_unknown_fields_of_a_server_are_no_error() -> None:
    data = b'{"metadata": {"name": "n", "managedFields": [{"a": 1}]}, "spec": {"podCIDRs": ["192.0.2.0/24"], "x": 1},'
    data += b'"status": {"conditions": [{"type": "A", "status": "True", "lastHeartbeatTime": null}], "images": null}}'
    found = decode_node(data, "n")
    assert found.spec.pod_cidrs == ("192.0.2.0/24",)
    assert found.status.conditions[0].last_heartbeat_time == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"metadata": 1}', "Expected `object`"),
        (b'{"metadata": {"name": "m"}}', "the server has told of another object, 'm'"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (MAX_NODE_BYTES + 1), "a Node of"),
    ],
)
def test_what_is_no_node_is_an_error(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode_node(data, "n")
