"""The probes of "Configure Liveness, Readiness and Startup Probes" in the Kubernetes documentation, quicker.

What the page says of each example is what the test looks for; seconds are a few where the page has thirty.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.e2e.agent import Agent, container_status, is_ready, restart_count
from tests.e2e.manifests import Json, container, pod
from tests.e2e.pod_servers import Health, PodServers, Web
from tests.support.servers.health_server import SERVING
from tests.support.servers.local_servers import silent

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

DEADLINE_S: Final = 90.0


def probe(handler: Json, **times: int) -> Json:
    return {**handler, "timeoutSeconds": 5, **times}


def restarted(agent: Agent, name: str) -> bool:
    return restart_count(agent.pods().get(name, {"status": {}})) > 0


def test_a_liveness_command(agent: Agent) -> None:
    """exec-liveness.yaml: /tmp/healthy is there for a while, then it is removed; the container is restarted."""
    script = "mkdir -p /tmp; touch /tmp/healthy; sleep 5; rm -f /tmp/healthy; sleep 600"
    alive = probe({"exec": {"command": ["cat", "/tmp/healthy"]}}, initialDelaySeconds=1, periodSeconds=1)
    agent.run(pod("liveness-exec", container("liveness", script, livenessProbe=alive), terminationGracePeriodSeconds=1))
    assert not agent.messages("liveness-exec", "Unhealthy"), "in the first seconds there are no probe failures"
    before = container_status(agent.pods()["liveness-exec"], "liveness")["containerID"]
    agent.until(
        lambda: restart_count(agent.pods()["liveness-exec"], "liveness") == 1, "the container is restarted", DEADLINE_S
    )
    unhealthy = agent.messages("liveness-exec", "Unhealthy")
    assert any(message.startswith("Liveness probe failed: cat: ") for message in unhealthy)
    killing = "Container liveness failed liveness probe, will be restarted"
    assert killing in agent.messages("liveness-exec", "Killing")
    assert container_status(agent.pods()["liveness-exec"], "liveness")["containerID"] != before
    assert "Liveness:" in agent.describe("liveness-exec")
    agent.until_ready(["liveness-exec"], DEADLINE_S)
    agent.remove("liveness-exec")


@pytest.mark.slow
def test_a_liveness_http_request(agent: Agent, servers: PodServers) -> None:
    """http-liveness.yaml: /healthz answers 200 for a while, after that 500; the container is killed and restarted."""
    web = Web()
    get = {"path": "/healthz", "port": 8080, "httpHeaders": [{"name": "Custom-Header", "value": "Awesome"}]}
    alive = probe({"httpGet": get}, initialDelaySeconds=8, periodSeconds=1)
    agent.run(pod("liveness-http", container(livenessProbe=alive)))
    servers.serve("liveness-http", 8080, web)
    agent.until(lambda: len(web.heads) >= 3, "it is probed", DEADLINE_S)
    assert "\r\nCustom-Header: Awesome\r\n" in web.heads[0]
    assert not restarted(agent, "liveness-http")
    web.status = "500 Internal Server Error"
    agent.until(lambda: restarted(agent, "liveness-http"), "the container is restarted", DEADLINE_S)
    failed = "Liveness probe failed: HTTP probe failed with statuscode: 500"
    assert failed in agent.messages("liveness-http", "Unhealthy")
    agent.remove("liveness-http")


def test_readiness_and_liveness_over_tcp(agent: Agent, servers: PodServers) -> None:
    """tcp-liveness-readiness.yaml: it is Ready once it can be connected to; and it is left alone."""
    socket = {"tcpSocket": {"port": 8080}}
    proxy = container(
        "goproxy",
        ports=[{"containerPort": 8080}],
        readinessProbe=probe(socket, initialDelaySeconds=1, periodSeconds=1),
        livenessProbe=probe(socket, initialDelaySeconds=30, periodSeconds=1),
    )
    agent.write(pod("goproxy", proxy))
    agent.until_running(["goproxy"], DEADLINE_S)
    assert not is_ready(agent.pods()["goproxy"])
    servers.serve("goproxy", 8080, silent)
    agent.until_ready(["goproxy"], DEADLINE_S)
    assert restart_count(agent.pods()["goproxy"], "goproxy") == 0
    agent.remove("goproxy")


@pytest.mark.slow
def test_a_grpc_liveness_probe(agent: Agent, servers: PodServers) -> None:
    """grpc-liveness.yaml: the server does not answer for its service any more; the container is restarted."""
    serves = Health(**{"": SERVING})
    alive = probe({"grpc": {"port": 2379}}, initialDelaySeconds=8, periodSeconds=1)
    agent.run(pod("etcd-with-grpc", container(livenessProbe=alive)))
    servers.serve("etcd-with-grpc", 2379, serves)
    assert not restarted(agent, "etcd-with-grpc")
    serves.statuses.clear()
    agent.until(lambda: restarted(agent, "etcd-with-grpc"), "the container is restarted", DEADLINE_S)
    failed = "Liveness probe failed: error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    assert failed in agent.messages("etcd-with-grpc", "Unhealthy")
    agent.remove("etcd-with-grpc")


@pytest.mark.slow
def test_a_slow_starter_is_protected_by_its_startup_probe(agent: Agent, servers: PodServers) -> None:
    """Startup may take failureThreshold * periodSeconds, then liveness takes over; one that never starts is killed."""
    ports = [{"name": "liveness-port", "containerPort": 8080}]
    get = {"httpGet": {"path": "/healthz", "port": "liveness-port"}}
    alive, start = probe(get, failureThreshold=1, periodSeconds=1), probe(get, failureThreshold=60, periodSeconds=1)
    never = probe(get, failureThreshold=3, periodSeconds=1)
    agent.write(
        pod("slow", container(ports=ports, livenessProbe=alive, startupProbe=start)),
        pod("never", container(ports=ports, livenessProbe=alive, startupProbe=never)),
    )
    agent.until_running(["slow", "never"], DEADLINE_S)
    agent.until(lambda: restarted(agent, "never"), "the one that never starts is restarted", DEADLINE_S)
    killing = "Container main failed startup probe, will be restarted"
    assert killing in agent.messages("never", "Killing")
    slow = container_status(agent.pods()["slow"])
    assert (slow["started"], slow["restartCount"]) == (False, 0), "a single failed liveness probe would have killed it"
    web = Web()
    servers.serve("slow", 8080, web)
    agent.until_ready(["slow"], DEADLINE_S)
    web.status = "503 Deadlocked"
    agent.until(lambda: restarted(agent, "slow"), "then its liveness counts", DEADLINE_S)
    assert "Container main failed liveness probe, will be restarted" in agent.messages("slow", "Killing")
    agent.remove("slow", "never")


@pytest.mark.slow
def test_what_is_not_ready_is_not_restarted(agent: Agent) -> None:
    """A readiness probe is written as a liveness probe; what fails it gets no traffic, and goes on."""
    ready = probe({"exec": {"command": ["cat", "/tmp/healthy"]}}, initialDelaySeconds=1, periodSeconds=2)
    agent.write(
        pod("waits", container(script="mkdir -p /tmp; sleep 6; touch /tmp/healthy; sleep 600", readinessProbe=ready))
    )
    agent.until_running(["waits"], DEADLINE_S)
    agent.until(lambda: bool(agent.messages("waits", "Unhealthy")), "it is not ready", DEADLINE_S)
    assert not is_ready(agent.pods()["waits"])
    agent.until_ready(["waits"], DEADLINE_S)
    assert restart_count(agent.pods()["waits"]) == 0
    agent.remove("waits")
