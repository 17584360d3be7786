"""The demo's manifests as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.agent import Json, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.status_observer import INFRA

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

DEMO = Path(__file__).parents[2] / "configs" / "demo"


def lasting(pod: Json) -> list[str]:
    """The containers that stay: regular ones and sidecars."""
    sidecars = [c for c in pod["spec"].get("initContainers", ()) if c.get("restartPolicy") == "Always"]
    return [c["name"] for c in (*sidecars, *pod["spec"]["containers"])]


def test_every_demo_pod_becomes_ready(new_agent: NewAgent) -> None:
    subprocess.run([DEMO / "image"], check=True, timeout=60)
    names = {path.stem for path in (DEMO / "manifests").iterdir()}
    agent = new_agent(staticPodPath=str(DEMO / "manifests"))
    agent.start()
    agent.until_ready(names)
    pods = agent.pods()
    assert pods.keys() == names
    restarts = {name: restart_count(pod, "worker") for name, pod in pods.items()}
    assert restarts == {**dict.fromkeys(names, 0), "second-try": 1}
    wanted = {(name, each) for name, pod in pods.items() for each in lasting(pod)}
    assert wanted == {key for key, c in agent.eye.running().items() if c.name != INFRA}
    assert agent.cli("logs", "two-containers", "-c", "reader", "--tail", "1").out.strip()
    agent.stop_pods()
    assert agent.eye.containers(infra=True) == []
    assert agent.eye.podman_pods() == []
