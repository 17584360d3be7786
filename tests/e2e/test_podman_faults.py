"""Podman as an unreliable partner: it hangs, it refuses, it comes back. Nothing is lost, nothing is restarted.

What its death by kill -9 does is in `test_process_deaths`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Final

import pytest

from tests.e2e.agent import Agent, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod, pods
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import SOCKET, spawn_service

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

RUNNING: Final = 6
STARTING: Final = 6
AWAY_S: Final = 20.0
RECOVERY_S: Final = 90.0
"""From Podman's return until everything is as wanted, with a CPU that others use too."""
POD_WORKERS: Final = ("pods-0", "pods-1")


class UsersService:
    """A service that is not the agent's child, as a user's podman.socket is none."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rl-podman-", dir="/tmp"))
        self.process = spawn_service(self.directory)

    @property
    def endpoint(self) -> str:
        return f"unix://{self.directory / SOCKET}"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def go(self) -> None:
        """End the service and leave its socket file: who connects is refused."""
        self.process.kill()
        self.process.wait()

    def come_back(self) -> None:
        self.process = spawn_service(self.directory)

    def close(self) -> None:
        for signum in (signal.SIGCONT, signal.SIGTERM):
            self.process.send_signal(signum)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.go()
        shutil.rmtree(self.directory)


@pytest.fixture
def users() -> Iterator[UsersService]:
    service = UsersService()
    yield service
    service.close()


Fault = Callable[[UsersService], None]
FAULTS: Final[dict[str, tuple[Fault, Fault]]] = {
    "hangs": (UsersService.stop, UsersService.go_on),
    "refuses": (UsersService.go, UsersService.come_back),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_podman_is_away_while_pods_run_start_change_and_go(
    users: UsersService, new_agent: NewAgent, fault: str
) -> None:
    begin, end = FAULTS[fault]
    agent = new_agent(containerRuntimeEndpoint=users.endpoint, podman={"service": "auto"})
    agent.start()
    running, starting = pods("run", RUNNING), pods("new", STARTING)
    agent.run(*running.values())
    before, process = agent.eye.pod_table(), users.process

    agent.write(*starting.values())
    agent.until(lambda: any(is_ready(agent.pods()[name]) for name in starting if name in agent.pods()), "one started")
    uids = [found["metadata"]["uid"] for found in agent.pods().values()]
    begin(users)
    agent.write(pod("run-000", container(script=f"echo edited; {STAY}")))
    agent.remove("run-001", "new-005")
    assert_answers_while_podman_is_away(agent)
    end(users)

    agent.until(lambda: breakers(agent) == {"Closed"}, "every breaker has closed", RECOVERY_S)
    agent.until_ready([*(running.keys() - {"run-001"}), *(starting.keys() - {"new-005"})], RECOVERY_S)
    agent.until_gone(["run-001", "new-005"], RECOVERY_S)
    agent.until(lambda: agent.cli("logs", "run-000").out == "edited\n", "the edit is there", RECOVERY_S)
    assert "warning" not in agent.cli("get", "pods").err

    after = agent.eye.pod_table()
    touched = {("run-000", "main"), ("run-001", "main"), ("run-001", INFRA)}
    assert {key: after.get(key) for key in before.keys() - touched} == {
        key: lifecycle for key, lifecycle in before.items() if key not in touched
    }
    # A service that dies over a start leaves a monitor, which is searched for when it is back: not after the test.
    agent.until(lambda: not agent.eye.lost_monitors(uids), "what Podman has lost is ended", RECOVERY_S)
    now = agent.pods()
    assert {restart_count(p) for name, p in now.items() if name != "run-000"} == {0}
    twice = [c.podman_name for c in agent.eye.containers() if c.attempt and c.pod != "run-000"]
    assert twice == [], "containers that were made twice"
    assert_told_once(agent)
    if fault == "hangs":
        assert (users.process, users.process.poll()) == (process, None), "a user's service is never killed"


def assert_answers_while_podman_is_away(agent: Agent) -> None:
    """For as long as it is away: the agent is up, and says how old what it says is."""
    workers = agent.workers()
    agent.until(lambda: breakers(agent, "node") == {"Open"}, "the node worker's breaker has opened")
    agent.until(lambda: "Open" in breakers(agent, *POD_WORKERS), "a pod worker's breaker has opened")
    agent.until(lambda: bool(agent.get("/version")["runtimeSilentSince"]), "it is known since when")
    shown = agent.cli("get", "pods")
    assert shown.code == 0
    assert "warning: Podman has not answered for " in shown.err
    assert all(f"run-{number:03}" in shown.out for number in range(RUNNING) if number != 1)
    assert "warning: Podman has not answered for " in agent.cli("describe", "pod", "run-002").err
    assert " Open " in agent.cli("get", "workers").out
    sleep(AWAY_S)
    names = ("node", "api", *POD_WORKERS)
    assert {n: agent.workers()[n]["pid"] for n in names} == {n: workers[n]["pid"] for n in names}


def assert_told_once(agent: Agent) -> None:
    told = [event["reason"] for event in agent.events("e2e") if event["reason"].startswith("ContainerRuntime")]
    assert sorted(told) == ["ContainerRuntimeDown", "ContainerRuntimeUp"]
    about_node = {event["reason"]: event["message"] for event in agent.events("e2e")}
    assert about_node["NodeNotReady"] == "Node e2e status is now: NodeNotReady"
    assert about_node.keys() >= {"Starting", "NodeReady"}
    log = agent.log_text()
    assert log.count("circuit breaker open") <= 3, "once for each process that speaks to Podman"
    assert log.count("circuit breaker open") == log.count("circuit breaker closed")


@pytest.mark.slow
def test_our_own_service_is_replaced_when_it_hangs(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(*pods("run", RUNNING).values())
    before, service = agent.eye.pod_table(), agent.workers()["podman"]
    agent.kill("podman", signal.SIGSTOP)
    agent.write(pod("new"))
    agent.until(lambda: agent.workers()["podman"]["incarnation"] > service["incarnation"], "it is replaced")
    agent.until_ready(["new", *pods("run", RUNNING)], RECOVERY_S)
    now = agent.workers()["podman"]
    assert (now["deaths"], now["incarnation"]) == (service["deaths"] + 1, service["incarnation"] + 1)
    assert "ContainerRuntimeReplaced" in {event["reason"] for event in agent.events("e2e")}
    after = agent.eye.pod_table()
    assert before.items() <= after.items(), "nothing was restarted"
    assert after.keys() == before.keys() | {("new", "main"), ("new", INFRA)}
    agent.until(lambda: breakers(agent) == {"Closed"}, "every breaker has closed", RECOVERY_S)


def breakers(agent: Agent, *names: str) -> set[str]:
    """Breakers of these workers, or of all that speak to Podman."""
    workers = agent.workers()
    return {workers[name]["breaker"] for name in names or ("node", *POD_WORKERS)}
