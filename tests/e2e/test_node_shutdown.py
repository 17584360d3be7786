"""The node goes down in order: drained by hand, by the host's logind, and over deaths of the agent."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.state.shutdown_state import FILE
from tests.e2e.agent import STOP_DEADLINE_S, Agent
from tests.e2e.manifests import Json, container, pod
from tests.support.login1 import Login1, needs_bus, system_bus
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ROLES: Final = ("master", "pods-0", "node")
CRITICAL: Final = "system-node-critical"
CRITICAL_PRIORITY: Final = 2_000_000_000
DRAINED, HOST_DOWN = "drain", "shutdown"
"""Causes, as they are on disk."""
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


def steps(often: str) -> list[Any]:
    """Roles that die, and moments. One role is tried always, at the first moment."""
    return [
        (pytest.param if (role, moment) == (often, "it has begun") else seldom)(role, moment, id=f"{role}-{moment}")
        for moment in ("it has begun", "one has ended", "all have ended")
        for role in ROLES
    ]


MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "it has begun": lambda agent: True,
    "one has ended": lambda agent: not jobs_run(agent, 3),
    "all have ended": lambda agent: not jobs_run(agent, 1),
}
"""Steps of a drain, as they show from outside."""


def jobs_run(agent: Agent, at_least: int) -> bool:
    return sum(bool(agent.eye.running(f"job-{number}")) for number in range(3)) >= at_least


@pytest.mark.parametrize(("role", "moment"), steps("master"))
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


GROUPS: Final = {"low": 0, "middle": 1000, "high": CRITICAL_PRIORITY}
"""Priority of a pod of each group, in the order in which they end."""
BY_PRIORITY: Final = [
    {"priority": priority, "shutdownGracePeriodSeconds": seconds}
    for priority, seconds in ((0, 12), (1000, 8), (CRITICAL_PRIORITY, 8))
]


def groups(new_agent: Any, login1: Login1) -> Agent:
    """An agent with a pod in each of three groups; logind waits for it."""
    agent: Agent = new_agent(workers={"count": 1}, shutdownGracePeriodByPodPriority=BY_PRIORITY)
    agent.environment["DBUS_SYSTEM_BUS_ADDRESS"] = login1.address
    agent.start()
    agent.until(lambda: login1.is_held, "the agent inhibits the shutdown")
    agent.run(*(job(name, priority=priority) for name, priority in GROUPS.items()))
    return agent


def have_ended(agent: Agent) -> bool:
    return phases(agent) == dict.fromkeys(GROUPS, ("Failed", "Terminated"))


def are_in_order(agent: Agent) -> bool:
    """Each took a second after it was asked to end."""
    ends = [ended_at(agent, name) for name in GROUPS]
    return ends == sorted(set(ends))


@pytest.mark.slow
@needs_bus
def test_three_groups_end_in_their_order(new_agent: Any, login1: Login1) -> None:
    agent = groups(new_agent, login1)
    login1.tell(active=True)
    agent.until(lambda: not login1.is_held, "the host may go down")
    assert have_ended(agent)
    assert are_in_order(agent), [ended_at(agent, name) for name in GROUPS]


HOST_MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "it has begun": lambda agent: "the host goes down: pods end" in agent.log_text(),
    "one has ended": lambda agent: not agent.eye.running("low"),
    "all have ended": lambda agent: not agent.eye.running(),
}


@needs_bus
@pytest.mark.parametrize(("role", "moment"), steps("node"))
def test_a_process_that_dies_while_the_host_goes_down_changes_no_order(
    new_agent: Any, login1: Login1, role: str, moment: str
) -> None:
    """The master's inhibitor dies with it, and logind gives the next one none: it goes on all the same."""
    agent = groups(new_agent, login1)
    made = {container.id for container in agent.eye.containers(infra=True)}
    login1.tell(active=True)
    agent.kill_and_recover(role, lambda: HOST_MOMENTS[moment](agent))
    agent.until(lambda: have_ended(agent), "every pod has ended")
    assert are_in_order(agent), [ended_at(agent, name) for name in GROUPS]
    assert {container.id for container in agent.eye.containers(infra=True)} == made, "nothing began anew"
    login1.tell(active=False)
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Running"}, "called off, every pod runs")
    agent.until(lambda: login1.is_held, "the next shutdown waits")


@pytest.mark.slow
@needs_bus
def test_the_host_stays_up_while_there_is_no_agent(new_agent: Any, login1: Login1) -> None:
    agent = groups(new_agent, login1)
    login1.tell(active=True)
    agent.until(lambda: HOST_MOMENTS["one has ended"](agent), "one has ended")
    agent.kill("master")
    assert agent.wait_end() == -signal.SIGKILL
    login1.tell(active=False)
    agent.start()
    agent.until(lambda: {p for p, _ in phases(agent).values()} == {"Running"}, "every pod runs")
    agent.until(lambda: login1.is_held, "the next shutdown waits")


@needs_bus
@pytest.mark.parametrize("before", [seldom(DRAINED, id="a drain"), pytest.param(HOST_DOWN, id="the host's shutdown")])
def test_after_the_next_boot_pods_begin_in_order_of_priority(new_agent: Any, login1: Login1, before: str) -> None:
    """A boot, as far as an agent sees one: another boot id, and containers that have ended. Starts are at the same time
    but for milliseconds; who is admitted first has the place that there is."""
    agent = groups(new_agent, login1)
    first = started_at(agent, "high")
    if before is DRAINED:
        assert agent.cli("drain").code == 0
    else:
        login1.tell(active=True)
    agent.until(lambda: have_ended(agent), "every pod has ended")
    agent.stop()
    file = agent.state / FILE
    stored = json.loads(file.read_text())
    assert (stored["cause"], stored["drained"]) == (before, before is DRAINED)
    file.write_text(json.dumps(stored | {"bootID": "another"}))
    login1.tell(active=False)
    agent.configure({"maxPods": 2})
    agent.start()
    agent.until_ready(("high", "middle"))
    assert phases(agent)["low"] == ("Failed", "OutOfpods")
    assert started_at(agent, "high") > first
    assert "SchedulingDisabled" not in agent.cli("get", "nodes").out


STOP_MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "it has begun": lambda agent: any("deletionTimestamp" in p["metadata"] for p in agent.pods().values()),
    "one has ended": HOST_MOMENTS["one has ended"],
    "all have ended": HOST_MOMENTS["all have ended"],
}


@pytest.mark.parametrize(("role", "moment"), steps("pods-0"))
def test_stop_of_all_pods_leaves_nothing_whoever_dies_meanwhile(new_agent: Any, role: str, moment: str) -> None:
    agent = new_agent(workers={"count": 1})
    agent.start()
    agent.run(*(job(name, priority=priority) for name, priority in GROUPS.items()))
    pid = agent.processes()[role]
    with subprocess.Popen(agent.command("stop", "--pods"), stdout=subprocess.DEVNULL) as stopping:
        with suppress(OSError, http.client.HTTPException):  # it may have ended before it could be asked
            agent.until(lambda: STOP_MOMENTS[moment](agent), f"the moment to kill {role}", poll_s=0.01)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        stopping.wait(STOP_DEADLINE_S)
        agent.wait_end()
    stopped = agent.cli("stop", "--pods", "--yes", "--config", str(agent.config))
    assert stopped.code == 0, stopped
    assert not agent.eye.containers(infra=True)
    assert not agent.eye.podman_pods()


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
