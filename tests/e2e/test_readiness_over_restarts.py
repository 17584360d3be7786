"""A readiness on real Podman, with a server in the container, outlives the agent and its workers."""

from __future__ import annotations

import pytest

from tests.e2e.agent import container_status, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, Json, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

SERVE = f"mkdir -p /www; httpd -p 8080 -h /www; (sleep 3; touch /www/ok) & {STAY}"
"""Has something to say after three seconds."""


def http(path: str, **times: int) -> Json:
    return {"httpGet": {"path": path, "port": "web"}, "periodSeconds": 1, **times}


def command(*words: str, **times: int) -> Json:
    return {"exec": {"command": list(words)}, "periodSeconds": 1, **times}


def is_running(shown: Json) -> bool:
    return "running" in container_status(shown)["state"]


def test_a_server_is_ready_when_it_answers_and_stays_so_over_the_agents_death(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    ports = [{"name": "web", "containerPort": 8080}]
    agent.write(
        pod("web", container(script=SERVE, ports=ports, readinessProbe=http("/ok"))),
        pod("rarely", container(readinessProbe=command("true", periodSeconds=600, timeoutSeconds=30))),
    )
    agent.until(lambda: agent.row("web")[1:3] == ["0/1", "Running"], "it runs and is not ready")
    agent.until_ready(["web", "rarely"])
    assert agent.row("web")[1:3] == ["1/1", "Running"]
    [refused, *_] = agent.messages("web", "Unhealthy")
    assert refused == "Readiness probe failed: HTTP probe failed with statuscode: 404"
    agent.restart()
    agent.until(
        lambda: all("running" in container_status(pod)["state"] for pod in agent.pods().values()), "they are seen"
    )
    pods = agent.pods()
    assert is_ready(pods["rarely"]), "its next probe is minutes away"
    assert restart_count(pods["web"]) == restart_count(pods["rarely"]) == 0
    agent.until_ready(["web"])
    agent.kill_and_recover("pods-0")
    agent.kill_and_recover("pods-1")
    assert is_ready(agent.pods()["rarely"])
