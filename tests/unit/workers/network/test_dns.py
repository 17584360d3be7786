"""How a pod resolves names: policies, dnsConfig, limits."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ipc.k8s.api.v1.pod import PodDNSConfig, PodDNSConfigOption
from ipc.k8s.network.network_settings import NetworkSettings
from tests.support.pods import UID, pod
from workers.network.dns import (
    MAX_SEARCH_LIST_CHARS,
    Resolver,
    is_podmans,
    misses_cluster_dns,
    missing_cluster_dns_message,
    needs_podmans,
    parse_resolv_conf,
    pod_dns,
    podmans_dns,
    render_resolv_conf,
)

NODE = Resolver(servers=("192.0.2.1",), searches=("host.test",), options=("timeout:1",))
NO_CLUSTER = NetworkSettings()
CLUSTER = NetworkSettings(cluster_dns=("192.0.2.10",), cluster_domain="cluster.test")
IN_CLUSTER = ("default.svc.cluster.test", "svc.cluster.test", "cluster.test", "host.test")


@pytest.mark.parametrize(
    ("spec", "settings", "expected"),
    [
        ({}, NO_CLUSTER, NODE),
        ({"dns_policy": "Default"}, CLUSTER, NODE),
        ({"dns_policy": "ClusterFirst", "host_network": True}, CLUSTER, NODE),
        ({"dns_policy": "None"}, CLUSTER, Resolver()),
        (
            {"dns_policy": "ClusterFirst"},
            CLUSTER,
            Resolver(servers=("192.0.2.10",), searches=IN_CLUSTER, options=("ndots:5",)),
        ),
        (
            {"dns_policy": "ClusterFirstWithHostNet", "host_network": True},
            NetworkSettings(cluster_dns=("192.0.2.10",)),
            Resolver(servers=("192.0.2.10",), searches=("host.test",), options=("ndots:5",)),
        ),
        ({}, NetworkSettings(resolv_conf=""), Resolver(servers=("127.0.0.1",), searches=(".",))),
    ],
)
def test_policies(spec: dict[str, Any], settings: NetworkSettings, expected: Resolver) -> None:
    formed = pod_dns(pod(**spec), settings, NODE)
    assert (formed.resolver, formed.problems) == (expected, ())


def test_a_dns_config_adds_and_its_options_win() -> None:
    options = tuple(PodDNSConfigOption(name=n, value=v) for n, v in (("timeout", "9"), ("rotate", None)))
    config = PodDNSConfig(nameservers=("192.0.2.1", "192.0.2.2"), searches=("a.test", "host.test"), options=options)
    assert pod_dns(pod(dns_policy="Default", dns_config=config), NO_CLUSTER, NODE).resolver == Resolver(
        servers=("192.0.2.1", "192.0.2.2"), searches=("host.test", "a.test"), options=("timeout:9", "rotate")
    )


def test_limits() -> None:
    many = PodDNSConfig(
        nameservers=("192.0.2.2", "192.0.2.3", "192.0.2.4"), searches=tuple(f"s{n}.test" for n in range(40))
    )
    formed = pod_dns(pod(dns_config=many), NO_CLUSTER, NODE)
    assert formed.resolver.servers == ("192.0.2.1", "192.0.2.2", "192.0.2.3")
    assert len(formed.resolver.searches) == 32
    assert formed.problems[0] == (
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        "192.0.2.1 192.0.2.2 192.0.2.3"
    )
    assert formed.problems[1].startswith("Search Line limits were exceeded, some search paths have been omitted, ")
    assert formed.problems[1].endswith(f"the applied search line is: {' '.join(formed.resolver.searches)}")


def test_searches_that_are_too_long() -> None:
    long, longer = "a" * 250, "b" * 254
    searches = pod_dns(
        pod(dns_policy="None", dns_config=PodDNSConfig(searches=(longer, *(f"{long}{n}" for n in range(10))))),
        NO_CLUSTER,
        NODE,
    ).resolver.searches
    assert longer not in searches
    assert len(" ".join(searches)) <= MAX_SEARCH_LIST_CHARS < len(" ".join(searches)) + 252


def test_a_resolv_conf_is_read_and_written() -> None:
    servers = "# nameserver 192.0.2.9\nnameserver 192.0.2.1 x\nnameserver\n"
    text = f"{servers} search a.\nsearch b.test. c\noptions a\noptions b:1"
    read = parse_resolv_conf(text)
    assert read == Resolver(servers=("192.0.2.1",), searches=("b.test", "c"), options=("b:1",))
    assert render_resolv_conf(read) == "search b.test c\nnameserver 192.0.2.1\noptions b:1\n"
    assert render_resolv_conf(Resolver()) == ""


def test_whose_file_it_is() -> None:
    config = PodDNSConfig(searches=("a.test",))
    assert is_podmans(pod(), NO_CLUSTER, NODE)
    assert not is_podmans(pod(), CLUSTER, NODE)
    assert is_podmans(pod(dns_policy="Default"), CLUSTER, NODE)
    assert not is_podmans(pod(dns_config=config), NO_CLUSTER, NODE)
    assert needs_podmans(pod(dns_config=config), NO_CLUSTER)
    assert not needs_podmans(pod(dns_policy="None", dns_config=config), NO_CLUSTER)
    assert not is_podmans(pod(), NetworkSettings(resolv_conf="/etc/other"), NODE)
    assert not needs_podmans(pod(), NetworkSettings(resolv_conf="/etc/other"))


GOOGLE: Final = ("8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844")


@pytest.mark.parametrize(
    ("hosts", "podmans", "expected"),
    [
        (("127.0.0.1",), ("169.254.1.1", *GOOGLE[:2]), ("169.254.1.1",)),
        (("127.0.0.53", "::1"), ("10.0.2.3", *GOOGLE), ("10.0.2.3",)),
        (("fe80::1%eth0",), ("169.254.1.1", *GOOGLE), ("169.254.1.1",)),
        (("2001:db8::1",), ("10.0.2.3", *GOOGLE[:2]), ("10.0.2.3",)),
        (("2001:db8::1",), ("10.0.2.3", "2001:db8::1"), ("10.0.2.3", "2001:db8::1")),
        ((), ("10.89.0.1", *GOOGLE[:2]), ("10.89.0.1",)),
        (("no address",), ("169.254.1.1", *GOOGLE[:2]), ("169.254.1.1",)),
        (("8.8.8.8", "127.0.0.1"), ("169.254.1.1", "8.8.8.8"), ("169.254.1.1", "8.8.8.8")),
        (("2001:4860:4860::8888",), ("169.254.1.1", GOOGLE[2]), ("169.254.1.1", GOOGLE[2])),
        (("127.0.0.1",), GOOGLE[:2], GOOGLE[:2]),  # dns_servers of containers.conf: no forwarder stands before them
        (("127.0.0.1",), (), ()),
    ],
)
def test_public_servers_that_podman_has_made_up_are_left_out(
    hosts: tuple[str, ...], podmans: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    found = podmans_dns(pod(), Resolver(servers=podmans, searches=("a.test",)), Resolver(servers=hosts))
    assert found == Resolver(servers=expected, searches=("a.test",))
    assert is_podmans(pod(), NO_CLUSTER, Resolver(servers=hosts)) is ("8.8.8.8" in hosts)


def test_the_hosts_network_has_the_hosts_servers() -> None:
    local = Resolver(servers=("127.0.0.1",))
    assert is_podmans(pod(host_network=True), NO_CLUSTER, local)
    assert podmans_dns(pod(host_network=True), local, local) == local


def test_who_misses_a_clusters_dns() -> None:
    assert not misses_cluster_dns(pod(), NO_CLUSTER)
    assert misses_cluster_dns(pod(), NetworkSettings(cluster_domain="cluster.test"))
    assert misses_cluster_dns(pod(dns_policy="ClusterFirstWithHostNet"), NO_CLUSTER)
    assert not misses_cluster_dns(pod(dns_policy="ClusterFirstWithHostNet"), CLUSTER)
    assert not misses_cluster_dns(pod(dns_policy="Default"), NetworkSettings(cluster_domain="cluster.test"))
    assert missing_cluster_dns_message(pod(), NetworkSettings(cluster_domain="cluster.test")) == (
        f'pod: "web_default({UID})". kubelet does not have ClusterDNS IP configured and cannot create Pod using '
        '"ClusterFirst" policy. Falling back to "Default" policy.'
    )
