"""Containers that crash: the first restart at once, then a back-off that nothing forgets and nothing hurries."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.e2e.agent import Agent, container_status
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA, Seen

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CRASH = "exit 3"
BACK_OFF_S = 10
"""The first one; it doubles."""


def until_backing_off(agent: Agent, name: str, restarts: int) -> None:
    """Wait until the container has been restarted so often, not once more, and waits."""

    def is_backing_off() -> bool:
        status = container_status(agent.pods().get(name, {"status": {}}))
        count = status.get("restartCount", 0)
        assert count <= restarts, f"restarted {count} times\n{agent.story()}"
        waits = status.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
        return bool(waits and count == restarts and agent.next_try(name))

    agent.until(is_backing_off, f"{name} backs off after {restarts} restarts")


def the_dead_one(agent: Agent, name: str) -> Seen:
    (dead,) = (c for c in agent.eye.containers(name) if c.name == "main")
    assert (dead.state, dead.exit_code) == ("exited", 3)
    return dead


def test_the_first_restart_is_at_once_the_next_one_is_announced_and_an_edit_ends_the_wait(agent: Agent) -> None:
    agent.write(pod("crashes", container(script=CRASH)))
    until_backing_off(agent, "crashes", 1)
    assert the_dead_one(agent, "crashes").attempt == 1
    last = container_status(agent.pods()["crashes"])["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    row = agent.cli("get", "pod", "crashes").out.splitlines()[1].split()
    assert row[:4] == ["crashes", "0/1", "CrashLoopBackOff", "1"]
    told = agent.next_try("crashes")
    assert told.startswith("CrashLoopBackOff until ")
    assert f"back-off {BACK_OFF_S}s restarting failed container=main" in told
    assert "BackOff" in {event["reason"] for event in agent.events("crashes")}
    # Another definition has not crashed yet.
    agent.run(pod("crashes", container(script=STAY)))
    successor = agent.eye.container("crashes", "main")
    assert successor.attempt == 2
    announced = datetime.fromisoformat(told.split()[2].rstrip(":"))
    assert successor.started_at < announced.timestamp(), "nothing of this has to wait"


@pytest.mark.slow
def test_the_back_off_survives_its_worker_and_the_agent(agent: Agent) -> None:
    agent.write(pod("survives", container(script=CRASH), container("stays")))
    until_backing_off(agent, "survives", 1)
    agent.until(lambda: len(agent.eye.running("survives")) == 2, "the other container runs")
    first, told = the_dead_one(agent, "survives"), agent.next_try("survives")
    untouched = agent.eye.pod_table("survives")
    assert untouched.keys() == {("survives", "stays"), ("survives", INFRA)}
    # One of the two is its own.
    agent.kill_and_recover("pods-0")
    agent.kill_and_recover("pods-1")
    assert_waiting_still(agent, "survives", first, told)
    until_restarted(agent, "survives", 2)
    second, told = the_dead_one(agent, "survives"), agent.next_try("survives")
    assert second.attempt == 2
    assert second.started_at - first.started_at >= BACK_OFF_S
    assert f"back-off {2 * BACK_OFF_S}s restarting failed" in told
    # An agent takes its time to stop and to start: this wait is long enough for it.
    agent.restart()
    assert_waiting_still(agent, "survives", second, told)
    assert agent.eye.pod_table("survives") == untouched


def assert_waiting_still(agent: Agent, name: str, dead: Seen, told: str) -> None:
    until_backing_off(agent, name, dead.attempt)
    assert agent.next_try(name) == told
    assert the_dead_one(agent, name) == dead


def until_restarted(agent: Agent, name: str, restarts: int) -> None:
    agent.until(lambda: container_status(agent.pods()[name])["restartCount"] == restarts, f"restart {restarts}")
    until_backing_off(agent, name, restarts)
