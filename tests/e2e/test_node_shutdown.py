"""The node goes down in order: drained by hand, by the host's logind, and over deaths of the agent."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod
from tests.harness.login1 import Login1, needs_bus, system_bus

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ROLES: Final = ("master", "pods-0", "node")
CRITICAL: Final = "system-node-critical"
LATE: Final = "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.1; done"
"""Ends a second after it was asked to."""


def job(name: str, **spec: Any) -> Json:
    return pod(name, container(command=["sh", "-c", LATE]), terminationGracePeriodSeconds=20, **spec)


def phases(agent: Agent) -> dict[str, tuple[str, str]]:
    items = agent.get("/api/v1/pods")["items"]
    return {item["metadata"]["name"]: (item["status"]["phase"], item["status"].get("reason", "")) for item in items}


def ended_at(agent: Agent, name: str) -> str:
    (status,) = agent.pods()[name]["status"]["containerStatuses"]
    return str(status["state"]["terminated"]["finishedAt"])


def started_at(agent: Agent, name: str) -> str:
    (status,) = agent.pods()[name]["status"]["containerStatuses"]
    return str(status["state"]["running"]["startedAt"])


def test_drain_and_uncordon(new_agent: Any) -> None:
    agent = new_agent()
    agent.start()
    agent.run(job("low"), job("high", priorityClassName=CRITICAL))
    first = started_at(agent, "low")
    drained = agent.cli("drain")
    assert drained.code == 0, drained
    assert drained.out.splitlines()[0] == "node/e2e cordoned"
    assert drained.out.splitlines()[-1] == "node/e2e drained"
    assert phases(agent) == {"low": ("Failed", "Terminated"), "high": ("Failed", "Terminated")}
    assert ended_at(agent, "low") <= ended_at(agent, "high")
    assert "SchedulingDisabled" in agent.cli("get", "nodes").out

    agent.restart()
    agent.until(lambda: set(phases(agent)) == {"low", "high"}, "both are listed")
    assert {phase for phase, _ in phases(agent).values()} == {"Failed"}, "the next agent keeps the node drained"
    agent.write(job("late"))
    agent.until(lambda: phases(agent).get("late") == ("Failed", "NodeShutdown"), "no pod is admitted")

    assert agent.cli("uncordon").out == "node/e2e uncordoned\n"
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Running"}, "every pod runs")
    assert started_at(agent, "low") > first
    assert "SchedulingDisabled" not in agent.cli("get", "nodes").out


MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "it has begun": lambda agent: True,
    "one has ended": lambda agent: not jobs_run(agent, 3),
    "all have ended": lambda agent: not jobs_run(agent, 1),
}
"""Steps of a drain, as they show from outside."""


def jobs_run(agent: Agent, at_least: int) -> bool:
    return sum(bool(agent.eye.running(f"job-{number}")) for number in range(3)) >= at_least


@pytest.mark.parametrize(
    ("role", "moment"),
    [
        *((role, "it has begun") for role in ROLES),
        *(
            pytest.param(role, moment, marks=pytest.mark.slow)
            for role in ROLES
            for moment in ("one has ended", "all have ended")
        ),
    ],
)
def test_a_process_that_dies_in_the_midst_delays_the_drain_alone(new_agent: Any, role: str, moment: str) -> None:
    agent = new_agent(workers={"count": 1})
    agent.start()
    agent.run(*(job(f"job-{number}") for number in range(3)))
    with subprocess.Popen(agent.command("drain"), stdout=subprocess.PIPE, text=True) as draining:
        assert draining.stdout is not None
        assert draining.stdout.readline() == "node/e2e cordoned\n"
        agent.kill_and_recover(role, lambda: MOMENTS[moment](agent))
        draining.terminate()
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Failed"}, "every pod has ended")
    agent.cli("uncordon")
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Running"}, "every pod runs again")


@pytest.fixture
def login1(tmp_path: Path) -> Iterator[Login1]:
    with system_bus(tmp_path, delay_s=30) as made:
        yield made


@needs_bus
def test_the_host_goes_down(new_agent: Any, login1: Login1) -> None:
    agent = new_agent(shutdownGracePeriod="15s", shutdownGracePeriodCriticalPods="5s")
    agent.environment["DBUS_SYSTEM_BUS_ADDRESS"] = login1.address
    agent.start()
    agent.until(lambda: login1.is_held, "the agent inhibits the shutdown")
    agent.run(job("low"), job("high", priorityClassName=CRITICAL))
    login1.tell(active=True)
    agent.until(lambda: not login1.is_held, "the host may go down")
    assert phases(agent) == {"low": ("Failed", "Terminated"), "high": ("Failed", "Terminated")}
    assert ended_at(agent, "low") <= ended_at(agent, "high")
    (ready,) = (c for c in agent.get("/api/v1/nodes")["items"][0]["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], "node is shutting down" in ready["message"]) == ("False", True)
    login1.tell(active=False)
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Running"}, "called off, every pod runs")
    agent.until(lambda: login1.is_held, "the next shutdown waits too")


@needs_bus
def test_sigterm_meanwhile_waits_for_the_pods(new_agent: Any, login1: Login1) -> None:
    """As systemd ends the user's services while the host goes down."""
    agent = new_agent(shutdownGracePeriod="15s")
    agent.environment["DBUS_SYSTEM_BUS_ADDRESS"] = login1.address
    agent.start()
    agent.run(job("low"))
    agent.until(lambda: login1.is_held, "the agent inhibits the shutdown")
    login1.tell(active=True)
    agent.until(lambda: "the host goes down: pods end" in agent.log_text(), "the notice has come")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait_end() == 0
    assert "the host goes down: pods have ended" in agent.log_text()
    assert not agent.eye.running()
