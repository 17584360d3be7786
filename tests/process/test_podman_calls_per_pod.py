"""A whole agent on the simulated Podman service: how many calls it makes for each pod, with few pods and with many."""

from __future__ import annotations

import time

import pytest

from tests.bench.simulated import SimulatedNode, manifests, simulated_node

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

FEW, MANY = 30, 120
DEADLINE_S = 120.0
QUIET_S = 12.0
CALLS_PER_POD = {
    "create pod": 1.0,
    "create container": 1.0,
    "start container": 2.0,
    "inspect container": 3.0,
    "inspect image": 1.0,
    "list pods": 3.0,
}
"""The most of each until a pod of one container is Ready; its infra container is a container too."""
OTHER_CALLS = 20
"""Relists while that goes on, the first ping: not of any pod."""
LISTS = {"list containers", "list pods"}
MUTATIONS = {"create pod", "create container", "start container", "kill container", "remove container", "remove pod"}


def calls_since(node: SimulatedNode, before: dict[str, int]) -> dict[str, int]:
    return {name: n - before.get(name, 0) for name, n in node.service().calls.items() if n > before.get(name, 0)}


def run_pods(node: SimulatedNode, pods: int) -> None:
    node.until(lambda: node.service().running == pods and node.ready_pods() == pods, DEADLINE_S)


@pytest.mark.parametrize("pods", [FEW, MANY])
def test_calls_for_each_pod_do_not_grow(pods: int) -> None:
    with simulated_node(pods, instant=True) as node:
        node.start()
        node.state_pods(manifests(pods))
        run_pods(node, pods)
        started = node.service().calls
        assert {name: n for name, n in started.items() if n > CALLS_PER_POD.get(name, 0.0) * pods + OTHER_CALLS} == {}

        time.sleep(QUIET_S)  # Until the last looks at what was started.
        before = node.service().calls
        time.sleep(QUIET_S)
        quiet = calls_since(node, before)
        assert quiet.pop("ping", 0) <= 1
        assert quiet.keys() <= LISTS, "nothing happens, and single pods are looked at"
        assert max(quiet.values(), default=0) <= 3

        before = node.service().calls
        node.kill()
        node.start()
        run_pods(node, pods)
        again = calls_since(node, before)
        assert again.keys() & MUTATIONS == set(), "a restart of the agent changes nothing"
        assert again.get("inspect container", 0) <= OTHER_CALLS, "what was inspected is remembered"
