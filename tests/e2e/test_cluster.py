"""A node of a cluster: pods that a server binds to it run on real Podman, and the server knows what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def node(cluster: Cluster, new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    agent = new_shared_agent()
    cluster.join(agent, tmp_path_factory.mktemp("kubeconfig"))
    agent.start()
    return agent


def test_a_bound_pod_runs_and_goes_when_it_is_deleted(cluster: Cluster, node: Agent) -> None:
    cluster.schedule(pod("bound"))
    node.until(lambda: cluster.is_ready("bound"), "the server knows that the pod is ready")
    status = cluster.status("bound")
    assert status["phase"] == "Running"
    assert status["podIP"]
    assert status["containerStatuses"][0]["state"]["running"]
    cluster.delete("bound")
    node.until(lambda: "bound" not in cluster.pods(), "the server has forgotten the pod")
    node.until_gone(["bound"])
