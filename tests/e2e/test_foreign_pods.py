"""Pods of the same Podman that the agent has not made: it leaves them alone, whatever their labels say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.support.podman_service import IMAGE, podman
from workers.kubecontainer.labels import INSTANCE, POD_NAME, POD_NAMESPACE, POD_UID

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture
def foreign(agent: Agent) -> Iterator[str]:
    """A container that runs in a pod without an infra container, with labels that look like the agent's."""
    name = f"{agent.instance}-foreign"
    told = {INSTANCE: agent.instance, POD_UID: "foreign", POD_NAME: "foreign", POD_NAMESPACE: "default"}
    labels = [part for key, value in told.items() for part in ("--label", f"{key}={value}")]
    podman("pod", "create", "--infra=false", "--name", name, *labels)
    try:
        yield podman("run", "--detach", "--pod", name, *labels, IMAGE, "sleep", "1000").strip()
    finally:
        podman("pod", "rm", "--force", "--time", "0", name)


def test_a_pod_without_an_infra_container_is_neither_touched_nor_in_the_way(agent: Agent, foreign: str) -> None:
    agent.run(pod("beside"))
    agent.restart()
    agent.until_ready(["beside"])
    agent.remove("beside")
    agent.until_gone(["beside"])
    assert podman("inspect", "--format", "{{.State.Status}}", foreign).strip() == "running"
    assert "foreign" not in agent.pods()
    lines = agent.log_text().splitlines()
    assert [line for line in lines if " ERROR " in line or "Traceback" in line] == []
