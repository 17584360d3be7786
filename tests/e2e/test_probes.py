"""Probes of each kind with each parameter, on pods that contain one static binary; servers are in the test.

The examples of the Kubernetes documentation are in `test_probe_examples.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

import pytest

from ipc.clock import monotonic, wall
from tests.e2e.agent import Agent, container_status, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, pod
from tests.e2e.pod_servers import Health, PodServers, Web
from tests.one_binary import BINARY, WAIT, ensure_one_binary_image
from tests.podman_service import podman
from tests.servers.health_server import NOT_SERVING, SERVING
from tests.servers.local_servers import Handler, silent

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

WEB: Final = 8080
NAMED: Final = [{"name": "web", "containerPort": WEB}]
DEADLINE_S: Final = 90.0


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return ensure_one_binary_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent, image: str) -> Agent:
    shared = new_shared_agent()
    shared.start()
    return shared


def one(image: str, **fields: Any) -> Json:
    """A container with nothing in it but a binary."""
    return {"name": "main", "image": image, "imagePullPolicy": "Never", "command": list(WAIT), **fields}


def every_second(handler: Json, **times: int) -> Json:
    return {**handler, "periodSeconds": 1, "timeoutSeconds": 5, **times}


def http(**fields: Any) -> Json:
    return {"httpGet": {"port": WEB, **fields}}


class Case(NamedTuple):
    """A readiness probe that a server fulfils."""

    handler: Json
    server: Handler
    tls: bool = False
    host_port: int = 0
    """The pod is in the host's network, and the server there."""

    @property
    def ports(self) -> list[Json]:
        """Two pods in the host's network cannot have the same."""
        return [] if self.host_port else NAMED

    @property
    def port(self) -> int:
        return self.host_port or WEB


def test_each_kind_with_each_parameter_of_its_handler(agent: Agent, servers: PodServers, image: str) -> None:
    given = [{"name": "Host", "value": "example.org"}, {"name": "X-Probe", "value": "yes"}]
    warns = Web("302 Found")
    warns.headers = ("Location: http://example.org/",)
    cases = {
        "http": Case(http(), Web()),
        "http-name": Case(http(port="web"), Web()),
        "http-all": Case(http(path="/healthz?deep", httpHeaders=given), Web()),
        "http-warns": Case(http(), warns),
        "https": Case(http(scheme="HTTPS"), Web(), tls=True),
        "http-host": Case(http(host="127.0.0.1", port=18085), Web(), host_port=18085),
        "tcp": Case({"tcpSocket": {"port": WEB}}, silent),
        "tcp-name": Case({"tcpSocket": {"port": "web"}}, silent),
        "tcp-host": Case({"tcpSocket": {"port": 18086, "host": "127.0.0.1"}}, silent, host_port=18086),
        "grpc": Case({"grpc": {"port": WEB}}, Health(**{"": SERVING})),
        "grpc-service": Case({"grpc": {"port": WEB, "service": "db"}}, Health(db=SERVING)),
    }
    agent.write(
        *(
            pod(
                name,
                one(image, ports=case.ports, readinessProbe=every_second(case.handler)),
                hostNetwork=bool(case.host_port),
            )
            for name, case in cases.items()
        ),
    )
    agent.until_running(cases, DEADLINE_S)
    agent.until(lambda: all(agent.messages(name, "Unhealthy") for name in cases), "all have been refused", DEADLINE_S)
    assert not any(is_ready(agent.pods()[name]) for name in cases)
    for name, case in cases.items():
        servers.serve(name, case.port, case.server, tls=case.tls, own_network=not case.host_port)
    agent.until_ready(cases, DEADLINE_S)
    _check_requests(cases)
    refused = agent.messages("tcp", "Unhealthy")[0]
    assert refused.startswith("Readiness probe failed: dial tcp ")
    assert refused.endswith(f":{WEB}: connect: connection refused")
    assert agent.messages("http", "Unhealthy")[0].startswith('Readiness probe failed: Get "http://')
    warning = "Readiness probe warning: Probe terminated redirects, Response body: body"
    agent.until(lambda: warning in agent.messages("http-warns", "ProbeWarning"), "it is warned of", DEADLINE_S)
    pods = agent.pods()
    assert not any(restart_count(pods[name]) for name in cases)
    agent.remove(*cases)


def _check_requests(cases: dict[str, Case]) -> None:
    heads = {name: case.server.heads[0] for name, case in cases.items() if isinstance(case.server, Web)}
    assert heads["http-all"].startswith("GET /healthz?deep HTTP/1.1\r\nHost: example.org\r\n")
    assert "\r\nX-Probe: yes\r\n" in heads["http-all"]
    assert heads["http-host"].startswith("GET / HTTP/1.1\r\nHost: 127.0.0.1:18085\r\n")
    assert all("\r\nUser-Agent: kube-probe/1.36\r\n" in head for head in heads.values())


def test_commands(agent: Agent, image: str) -> None:
    """In a container that has no shell."""
    code = [{"name": "CODE", "value": "0"}]
    commands = {
        "exec": [BINARY, "exit", "$(CODE)"],
        "exec-fails": [BINARY, "say", "3", "ill"],
        "exec-absent": ["/bin/sh"],
        "exec-late": list(WAIT),
    }
    agent.write(
        *(
            pod(name, one(image, env=code, readinessProbe=seldom({"exec": {"command": command}})))
            for name, command in commands.items()
        )
    )
    agent.until_ready(["exec"], DEADLINE_S)
    late = f'Readiness probe failed: command timed out: "{" ".join(WAIT)}" timed out after 2s'
    agent.until(lambda: late in agent.messages("exec-late", "Unhealthy"), "a command is too late", DEADLINE_S)
    ill = {"Readiness probe failed: ill!", "Readiness probe failed: !ill"}
    agent.until(lambda: bool(ill & set(agent.messages("exec-fails", "Unhealthy"))), "a command fails", DEADLINE_S)
    errored = "Readiness probe errored and resulted in unknown state: "
    agent.until(
        lambda: any(message.startswith(errored) for message in agent.messages("exec-absent", "Unhealthy")),
        "a command does not exist",
        DEADLINE_S,
    )
    pods = agent.pods()
    assert not any(is_ready(pods[name]) for name in commands if name != "exec")
    assert not any(restart_count(pods[name]) for name in commands)
    agent.remove(*commands)


def seldom(handler: Json) -> Json:
    return {**handler, "periodSeconds": 4, "timeoutSeconds": 2}


def test_each_number_of_a_probe(agent: Agent, servers: PodServers, image: str) -> None:
    """initialDelaySeconds, periodSeconds, timeoutSeconds, successThreshold, failureThreshold."""
    webs = {"delayed": Web(), "slow-in-time": Web(delay_s=1.5), "slow": Web(delay_s=1.5), "thrice": Web()}
    numbers = {
        "delayed": {"initialDelaySeconds": 4, "periodSeconds": 2},
        "slow-in-time": {"timeoutSeconds": 4},
        "slow": {"timeoutSeconds": 1},
        "thrice": {"successThreshold": 3, "failureThreshold": 3},
    }
    agent.write(
        *(
            pod(f"number-{name}", one(image, readinessProbe=every_second(http(), **fields)))
            for name, fields in numbers.items()
        )
    )
    agent.until_running((f"number-{name}" for name in webs), DEADLINE_S)
    for name, web in webs.items():
        servers.serve(f"number-{name}", WEB, web)
    agent.until_ready([f"number-{name}" for name in webs if name != "slow"], DEADLINE_S)
    delayed = webs["delayed"].times
    agent.until(lambda: len(delayed) >= 3, "it is probed again", DEADLINE_S)
    started = container_status(agent.pods()["number-delayed"])["state"]["running"]["startedAt"]
    first = delayed[0] - monotonic() + wall()
    assert first - datetime.fromisoformat(started).timestamp() > 3.9, "the initial delay is four seconds"
    # Of two periods of two seconds each; the first may have come late.
    assert delayed[2] - delayed[0] > 2
    assert len(webs["thrice"].times) >= 3
    late = "(Client.Timeout exceeded while awaiting headers)"
    agent.until(lambda: late in str(agent.messages("number-slow", "Unhealthy")), "it is too slow", DEADLINE_S)
    assert not is_ready(agent.pods()["number-slow"])
    webs["thrice"].status = "500 Oops"
    asked = len(webs["thrice"].times)
    agent.until(lambda: not is_ready(agent.pods()["number-thrice"]), "it is ready no more", DEADLINE_S)
    assert len(webs["thrice"].times) - asked >= 3
    assert restart_count(agent.pods()["number-thrice"]) == 0


def test_liveness_and_startup_of_each_kind_restart_the_container_alone(
    agent: Agent, servers: PodServers, image: str
) -> None:
    web, serves = Web(), Health(**{"": SERVING})
    helper = one(image, name="other")
    agent.write(
        pod("live-http", one(image, livenessProbe=every_second(http(), failureThreshold=3)), helper),
        pod("live-grpc", one(image, livenessProbe=every_second({"grpc": {"port": WEB}}, failureThreshold=3)), helper),
        pod(
            "start-tcp", one(image, startupProbe=every_second({"tcpSocket": {"port": WEB}}, failureThreshold=2)), helper
        ),
        pod(
            "live-exec",
            one(image, livenessProbe=every_second({"exec": {"command": [BINARY, "exit", "4"]}}, failureThreshold=2)),
            helper,
        ),
    )
    agent.until_running(["live-http", "live-grpc"], DEADLINE_S)
    servers.serve("live-http", WEB, web)
    servers.serve("live-grpc", WEB, serves)
    dying = ("start-tcp", "live-exec")
    agent.until(lambda: all(restart_count(agent.pods()[n]) for n in dying), "they are restarted", DEADLINE_S)
    before = {name: restart_count(agent.pods()[name]) for name in ("live-http", "live-grpc")}
    web.status = "500 Oops"
    serves.statuses[""] = NOT_SERVING
    agent.until(
        lambda: all(restart_count(agent.pods()[n]) > before[n] for n in before), "they are restarted too", DEADLINE_S
    )
    web.status = "200 OK"
    serves.statuses[""] = SERVING
    agent.until_ready(before, DEADLINE_S)
    assert "Liveness probe failed: HTTP probe failed with statuscode: 500" in agent.messages("live-http", "Unhealthy")
    unhealthy = 'Liveness probe failed: service unhealthy (responded with "NOT_SERVING")'
    assert unhealthy in agent.messages("live-grpc", "Unhealthy")
    killed = {"live-http": "liveness", "live-grpc": "liveness", "live-exec": "liveness", "start-tcp": "startup"}
    for name, kind in killed.items():
        assert f"Container main failed {kind} probe, will be restarted" in agent.messages(name, "Killing")
        assert restart_count(agent.pods()[name], "other") == 0


@pytest.mark.slow
def test_a_probes_own_grace_period(agent: Agent) -> None:
    """The pod's is far longer than the test."""
    stubborn = {
        "name": "main",
        "image": "localhost/rootlet-test:latest",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"],
        "livenessProbe": every_second(
            {"exec": {"command": ["false"]}}, failureThreshold=1, terminationGracePeriodSeconds=1
        ),
    }
    agent.write(pod("stubborn", stubborn, terminationGracePeriodSeconds=3600))
    agent.until(lambda: restart_count(agent.pods().get("stubborn", {"status": {}})) > 0, "it is restarted", DEADLINE_S)
    last = container_status(agent.pods()["stubborn"])["lastState"]["terminated"]
    assert last["exitCode"] == 137
    agent.remove("stubborn")
    podman("kill", agent.eye.container("stubborn", "main").id)  # an hour is long
