"""Resources of the node that its pods have together."""

from __future__ import annotations

from typing import Any

from ipc.k8s.api.v1.pod import Pod
from supervisor.admission.host_ports import HostPort
from supervisor.admission.node_usage import NodeUsage
from tests.support.manifests import pod

PORT = HostPort("0.0.0.0", "TCP", 8080)


def taking(name: str, cpu: str = "1", *ports: dict[str, Any]) -> Pod:
    taken = {
        "resources": {"requests": {"cpu": cpu}},
        "ports": [{"containerPort": 80, **port} for port in ports],
    }
    return pod(name, metadata={"uid": name}, containers=[{"name": "main", "image": "busybox", **taken}])


def holder(usage: NodeUsage, wanted: HostPort = PORT) -> str:
    found = usage.holder(wanted)
    return found[0].metadata.name if found else ""


def test_what_is_known_of_a_pod_is_replaced_and_dropped() -> None:
    usage = NodeUsage([taking("a", "1500m", {"hostPort": 8080})])
    assert (len(usage), usage.requested("cpu"), holder(usage)) == (1, 1500, "a")
    usage.put(taking("a", "100m"))
    assert (len(usage), usage.requested("cpu"), holder(usage)) == (1, 100, "")
    usage.drop("a")
    usage.drop("a")
    assert (len(usage), usage.requested("cpu"), usage.requested("memory")) == (0, 0, 0)


def test_a_port_on_one_address_leaves_it_to_others_on_another() -> None:
    usage = NodeUsage(taking(f"p{last}", "1", {"hostPort": 8080, "hostIP": f"127.0.0.{last}"}) for last in (1, 2))
    assert holder(usage) == "p1"
    assert holder(usage, HostPort("127.0.0.2", "TCP", 8080)) == "p2"
    assert holder(usage, HostPort("127.0.0.3", "TCP", 8080)) == ""
    assert holder(usage, HostPort("127.0.0.2", "UDP", 8080)) == ""


def test_who_is_passed_over_still_has_its_part() -> None:
    usage = NodeUsage([taking("a", "1", {"hostPort": 8080}), taking("b", "2")])
    others = usage.without(["a", "unknown"])
    assert (len(others), others.requested("cpu"), holder(others)) == (1, 2000, "")
    assert (len(usage), usage.requested("cpu"), holder(usage)) == (2, 3000, "a")
    assert usage.without(["unknown"]) is usage
