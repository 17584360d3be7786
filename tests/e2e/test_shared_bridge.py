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
from tests.podman_service import PodmanService, podman

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
