"""The host's addresses come, change and go under a real agent: in a network namespace of its own, without Podman."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.model_children import Agent, by_incarnation

pytestmark = pytest.mark.process

FIRST = ("10.9.0.2", "fd00:9::2")
SECOND = "10.9.0.3"


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent(by_incarnation({}), own_network=True, nodeStatusUpdateFrequency="200ms")
    yield made
    made.close()


def status(agent: Agent, name: str) -> dict[str, Any]:
    found = {pod["metadata"]["name"]: pod["status"] for pod in agent.client.get("/api/v1/pods")["items"]}
    return next((shown for pod, shown in found.items() if pod.startswith(name)), {})


def addresses(agent: Agent, name: str) -> tuple[list[str], list[str]]:
    """Addresses of the host and of the pod; the first of each is the single one."""
    shown = status(agent, name)
    host, own = ([each["ip"] for each in shown.get(field, ())] for field in ("hostIPs", "podIPs"))
    assert (shown.get("hostIP", ""), shown.get("podIP", "")) == (next(iter(host), ""), next(iter(own), ""))
    return host, own


def told(agent: Agent) -> list[tuple[str, str]]:
    return [(event["type"], event["message"]) for event in agent.events("NodeAddresses")]


def test_pods_follow_the_hosts_addresses(agent: Agent) -> None:
    agent.state("plain")
    agent.state("shares", hostNetwork=True)
    agent.until(lambda: agent.is_running(["pods-0"]), "the agent is up")
    agent.until(lambda: bool(status(agent, "shares")), "the pods are known")
    assert addresses(agent, "shares") == addresses(agent, "plain") == ([], []), "loopback is no address of a host"
    none = "the host has no address but loopback's: pods have no hostIP, and those in its network no podIP"
    assert told(agent) == [("Warning", none)]
    agent.in_network("ip", "link", "add", "one", "type", "veth", "peer", "name", "other")
    agent.in_network("ip", "link", "set", "other", "up")
    agent.in_network("ip", "link", "set", "one", "up")
    agent.in_network("ip", "address", "add", f"{FIRST[0]}/24", "dev", "one")
    agent.in_network("ip", "address", "add", f"{FIRST[1]}/64", "dev", "one", "nodad")
    agent.until(lambda: addresses(agent, "shares") == (list(FIRST), list(FIRST)), "both families are named")
    agent.until(lambda: addresses(agent, "plain") == (list(FIRST), []), "for every pod")
    agent.in_network("ip", "address", "delete", f"{FIRST[0]}/24", "dev", "one")
    agent.in_network("ip", "address", "add", f"{SECOND}/24", "dev", "one")
    now = [SECOND, FIRST[1]]
    agent.until(lambda: addresses(agent, "shares") == (now, now), "another one is followed")
    assert ("Normal", f"the host's addresses are {SECOND}, {FIRST[1]}") in told(agent)
    agent.in_network("ip", "link", "delete", "one")
    agent.until(lambda: addresses(agent, "shares") == ([], []), "none is named when none is there")
