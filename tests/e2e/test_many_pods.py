"""More pods than a demo has."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pods

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PODS = 100


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_hundred_pods_with_two_workers(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    wanted = pods("many", PODS)
    agent.write(*wanted.values())
    agent.until_ready(wanted, 120)
    assert len(agent.eye.running()) == 2 * PODS
    assert len(agent.eye.podman_pods()) == PODS
    shards = {name: worker["pods"] for name, worker in agent.workers().items() if name.startswith("pods-")}
    assert sum(shards.values()) == PODS
    assert min(shards.values()) > 0
    agent.stop_pods()
    assert agent.eye.containers(infra=True) == []
