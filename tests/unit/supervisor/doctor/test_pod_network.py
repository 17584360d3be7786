"""Findings about the network that pods of a cluster are on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from supervisor.config.settings import Settings
from supervisor.doctor.pod_network import PodNetworkFacts, check_pod_network, parse_routes, read_pod_network
from tests.support.host_facts import SETTINGS, bad

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
wg0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
THERE = PodNetworkFacts(subnets=("10.244.3.0/24",), routes=("192.0.2.0/24", "10.244.0.0/16"))


def in_cluster(mode: Any = "bridge", bridge: str = "pods", **cluster: Any) -> Settings:
    section = msgspec.structs.replace(SETTINGS.cluster, **{"kubeconfig": "/k", "network_scope": "Cluster", **cluster})
    network = msgspec.structs.replace(SETTINGS.pod_network, mode=mode, bridge=bridge)
    return msgspec.structs.replace(SETTINGS, cluster=section, pod_network=network)


def test_a_network_that_others_reach_is_told_and_nothing_else() -> None:
    (finding,) = check_pod_network(THERE, in_cluster(), by_pasta=True)
    assert finding.message == "pods have addresses of 10.244.3.0/24, network pods"
    assert bad([finding]) == []


@pytest.mark.parametrize(
    ("changes", "settings", "level", "words"),
    [
        ({"subnets": None}, {}, "failed", "Podman has no network pods"),
        ({"subnets": None}, {"bridge": ""}, "failed", "Podman has no network podman"),
        ({"pod_cidrs": ("10.244.7.0/24",)}, {}, "warning", "routes 10.244.7.0/24 to this node, and pods have 10.244.3"),
        ({"routes": ("192.0.2.0/24",)}, {}, "warning", "this host has no route to 10.244.3.0/24"),
        (
            {"api_server_problem": "Connection refused"},
            {"kubernetes_service": "192.0.2.1:6443"},
            "warning",
            "192.0.2.1:6443: Connection refused: pods do not find the API server",
        ),
        (
            {"api_server_is_here": True},
            {"kubernetes_service": "192.0.2.1:6443"},
            "warning",
            "192.0.2.1:6443 is this host's own address",
        ),
    ],
)
def test_what_is_wrong_is_named(changes: Any, settings: Any, level: str, words: str) -> None:
    findings = list(check_pod_network(msgspec.structs.replace(THERE, **changes), in_cluster(**settings), by_pasta=True))
    assert bad(findings) == [(level, "cluster")]
    assert any(words in finding.message for finding in findings)


def test_slirp4netns_has_no_copy_of_the_hosts_address() -> None:
    here = msgspec.structs.replace(THERE, api_server_is_here=True)
    assert bad(list(check_pod_network(here, in_cluster(), by_pasta=False))) == []


def test_pods_of_this_node_alone_need_no_route() -> None:
    found = msgspec.structs.replace(THERE, routes=(), pod_cidrs=("10.0.0.0/24",))
    assert bad(list(check_pod_network(found, in_cluster(network_scope="Node"), by_pasta=True))) == []


def test_routes_of_the_kernel() -> None:
    assert parse_routes(ROUTES) == ("192.0.2.0/24", "10.244.0.0/16")
    assert parse_routes("") == ()


def test_podmans_answer_is_read() -> None:
    networks = [{"name": "pods", "subnets": [{"subnet": "10.244.3.0/24", "gateway": "10.244.3.1"}]}, {"name": "x"}]
    found = read_pod_network(in_cluster(network_scope="Node"), lambda: networks)
    assert found is not None
    assert (found.subnets, found.api_server_problem) == (("10.244.3.0/24",), "")
    gone = read_pod_network(in_cluster(bridge="other", network_scope="Node"), lambda: networks)
    assert gone is not None
    assert gone.subnets is None
    for settings in (in_cluster(mode="pasta"), in_cluster(kubeconfig="")):
        assert read_pod_network(settings, lambda: pytest.fail("nobody is asked")) is None
