"""Pods on a bridge that they share: they reach each other, by address and by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.support.podman_service import PodmanService, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PORT: Final = 8000
POD_CIDR: Final = "10.244.201.0/24"
"""A range as a cluster gives one to a node (docs/cluster.md says how a network gets it)."""
SERVE: Final = f"while true; do hostname | nc -l -p {PORT}; done"


@contextlib.contextmanager
def network(name: str) -> Iterator[str]:
    """A bridge with DNS, and that range."""
    podman("network", "create", "--subnet", POD_CIDR, name)
    try:
        yield name
    finally:
        podman("network", "rm", "--force", name)


@pytest.fixture
def agent(podman_service: PodmanService, new_agent: NewAgent) -> Iterator[Agent]:
    """An agent whose pods are on a bridge of its own."""
    with network(f"{podman_service.new_instance()}-bridge") as name:
        made = new_agent(podNetwork={"mode": "bridge", "bridge": name})
        made.start()
        yield made
        made.stop_pods()


def test_pods_reach_each_other(agent: Agent) -> None:
    server = pod("server", container(script=SERVE), hostname="web", subdomain="team", terminationGracePeriodSeconds=1)
    agent.run(server, pod("client"))
    ips = {name: shown["status"]["podIP"] for name, shown in agent.pods().items()}
    assert ips["server"] != ips["client"], "each has an address of its own"
    assert all(ip_address(ip) in ip_network(POD_CIDR) for ip in ips.values())
    fetch = f"nc -w 2 {ips['server']} {PORT} </dev/null"
    agent.until(lambda: agent.inside("client", fetch) == "web", "its address is reached")
    for name in ("web", "web.team.default.svc"):
        assert ips["server"] in agent.inside("client", f"busybox nslookup {name}")
    assert f"{ips['server']}\tweb.team.default.svc\tweb" in agent.inside("server", "cat /etc/hosts").splitlines()


SERVICE: Final = "10.96.201.7"
"""The address of a service, which no interface has."""


@contextlib.contextmanager
def proxied(address: str, pod_ip: str) -> Iterator[None]:
    """Podman's network namespace with the rules that a kube-proxy in it would make (docs/howto/cluster-network.md)."""
    in_namespace = ("unshare", "--rootless-netns", "nft")
    table = f"table ip proxy-{pod_ip.replace('.', '-')}"
    rules = {
        "prerouting": f"type nat hook prerouting priority dstnat; ip daddr {address} dnat to {pod_ip}",
        # A pod of the same bridge would answer past these rules.
        "postrouting": f"type nat hook postrouting priority srcnat - 5; ct original ip daddr {address} masquerade",
    }
    chains = "".join(f"chain {name} {{ {rule}; }}; " for name, rule in rules.items())
    podman(*in_namespace, f"{table} {{ {chains} }}")
    try:
        yield
    finally:
        podman(*in_namespace, f"delete {table}")


@pytest.mark.slow
def test_services_of_a_proxy_in_podmans_network_are_reached(agent: Agent) -> None:
    agent.run(pod("server", container(script=SERVE), hostname="web", terminationGracePeriodSeconds=1), pod("client"))
    pod_ip = agent.pods()["server"]["status"]["podIP"]
    fetch = f"nc -w 2 {SERVICE} {PORT} </dev/null"
    with proxied(SERVICE, pod_ip):
        agent.until(lambda: agent.inside("client", fetch) == "web", "a client reaches the service's address")
