"""Init containers: one after the other before all else, again when they fail, and never again once they are done."""

from __future__ import annotations

import re

import pytest

from tests.e2e.agent import Agent, Json, container_status, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.expected_histories import GATE, let_through, told_by
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

BACK_OFF_S = 2
MAIN = container(script=f"echo up; {STAY}")


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    """One whose containers back off for a short time."""
    shared = new_shared_agent(crashLoopBackOff={"maxContainerRestartPeriod": f"{BACK_OFF_S}s"})
    shared.start()
    return shared


def setting_up(name: str = "setup", script: str = "echo done") -> Json:
    return container(name, script)


def until_status(agent: Agent, name: str, word: str) -> None:
    agent.until(lambda: agent.row(name)[2:3] == [word], f"{name} is {word}")


def identity(agent: Agent, name: str, container: str = "setup") -> tuple[str, str, int]:
    """Identity of the newest container of that name, as the agent tells it."""
    status = container_status(agent.pods()[name], container)
    ended = status["state"]["terminated"]
    return status["containerID"], ended["startedAt"], status["restartCount"]


def test_two_run_in_order_and_then_the_main_container(agent: Agent) -> None:
    gated = f"echo begun; {GATE}; echo done"
    agent.write(pod("ordered", MAIN, initContainers=[setting_up("first", gated), setting_up("second", gated)]))
    until_status(agent, "ordered", "Init:0/2")
    agent.until(lambda: ("ordered", "first") in agent.eye.running("ordered"), "the first one runs")
    assert {c.name for c in agent.eye.containers("ordered")} == {"first"}
    let_through(agent, "ordered", "first")
    until_status(agent, "ordered", "Init:1/2")
    agent.until(lambda: ("ordered", "second") in agent.eye.running("ordered"), "the second one runs")
    assert {c.name for c in agent.eye.containers("ordered")} == {"first", "second"}
    assert agent.pods()["ordered"]["status"]["phase"] == "Pending"
    let_through(agent, "ordered", "second")
    agent.until_ready(["ordered"])
    assert agent.row("ordered")[1:4] == ["1/1", "Running", "0"]
    assert agent.eye.running("ordered").keys() == {("ordered", "main"), ("ordered", INFRA)}
    assert told_by(agent, "ordered") == ["first: begun", "first: done", "second: begun", "second: done", "main: up"]
    described = agent.describe("ordered")
    assert described.index("Init Containers:\n  first:") < described.index("  second:") < described.index("  main:")
    assert "Initialized                 True" in described


def test_one_that_fails_is_tried_again_after_a_back_off_until_it_is_mended(agent: Agent) -> None:
    agent.write(pod("failing", MAIN, initContainers=[setting_up(script="echo tried; exit 3")]))

    def backs_off() -> bool:
        status = container_status(agent.pods().get("failing", {"status": {}}), "setup")
        waiting = status.get("state", {}).get("waiting", {})
        return bool(waiting.get("reason") == "CrashLoopBackOff" and status["restartCount"] >= 2)

    agent.until(backs_off, "it backs off again", poll_s=0.05)
    until_status(agent, "failing", "Init:CrashLoopBackOff")
    words = f"back-off {BACK_OFF_S}s restarting failed container=setup"
    told = re.compile(rf"^  setup:  CrashLoopBackOff until \S+Z: {words} pod=failing_default", re.MULTILINE)
    agent.until(lambda: told.search(agent.describe("failing")) is not None, "the next try is told")
    assert agent.cli("logs", "failing", "-c", "setup", "--previous") == (0, "tried\n", "")
    assert {c.name for c in agent.eye.containers("failing")} == {"setup"}, "nothing comes before it is done"
    paths = {event["involvedObject"].get("fieldPath") for event in agent.events("failing")}
    assert "spec.initContainers{setup}" in paths
    agent.run(pod("failing", MAIN, initContainers=[setting_up()]))
    assert told_by(agent, "failing")[-2:] == ["setup: done", "main: up"]


def test_one_that_fails_where_nothing_is_tried_again_is_the_end_of_the_pod(agent: Agent) -> None:
    inits = [setting_up(script="echo tried; exit 3"), setting_up("never")]
    agent.write(pod("lost", MAIN, initContainers=inits, restartPolicy="Never"))
    until_status(agent, "lost", "Init:Error")
    agent.until(lambda: not agent.eye.running("lost"), "its sandbox goes")
    agent.until(lambda: agent.pods()["lost"]["status"]["phase"] == "Failed", "the pod has failed")
    shown = agent.pods()["lost"]
    assert container_status(shown, "setup")["state"]["terminated"]["exitCode"] == 3
    assert [(c.name, c.attempt) for c in agent.eye.containers("lost")] == [("setup", 0)]
    assert agent.cli("logs", "lost", "-c", "setup") == (0, "tried\n", "")


def test_it_is_not_run_again_when_the_main_container_is_nor_when_the_agent_is(agent: Agent) -> None:
    agent.run(pod("once", MAIN, initContainers=[setting_up()]))
    before = identity(agent, "once")
    podman("kill", "--signal", "KILL", agent.eye.container("once", "main").id)
    agent.until(lambda: restart_count(agent.pods()["once"]) == 1, "the main container is restarted")
    agent.until_ready(["once"])
    assert identity(agent, "once") == before
    agent.restart()
    agent.until_ready(["once"])
    assert identity(agent, "once") == before
    # Even when nothing is left of it: a container that runs shows that it was done.
    pod_table = agent.eye.pod_table("once")
    podman("rm", before[0].removeprefix("podman://"))
    agent.restart()
    agent.run(pod("looked-at-too"))
    agent.until_ready(["once"])
    assert agent.eye.pod_table("once") == pod_table
    assert {c.name for c in agent.eye.containers("once")} == {"main"}
    assert container_status(agent.pods()["once"], "setup")["state"]["terminated"]["exitCode"] == 0


def test_another_definition_of_the_main_container_does_not_run_it_again(agent: Agent) -> None:
    agent.run(pod("edited", MAIN, initContainers=[setting_up()]))
    before = identity(agent, "edited")
    agent.write(pod("edited", container(script=f"echo another; {STAY}"), initContainers=[setting_up()]))
    agent.until(lambda: agent.cli("logs", "edited").out == "another\n", "the new definition runs")
    agent.until_ready(["edited"])
    assert identity(agent, "edited") == before
    assert told_by(agent, "edited") == ["setup: done", "main: another"]


@pytest.mark.slow
def test_another_sandbox_begins_with_it(agent: Agent) -> None:
    agent.run(pod("again", MAIN, initContainers=[setting_up("first"), setting_up("second")]))
    before = {c.id for c in agent.eye.containers("again", infra=True)}
    podman("kill", "--signal", "KILL", agent.eye.container("again", INFRA).id)

    def is_new() -> bool:
        found = agent.eye.containers("again", infra=True)
        return len(found) == 4 and before.isdisjoint(c.id for c in found)

    agent.until(is_new, "another sandbox with all of them")
    agent.until_ready(["again"])
    assert told_by(agent, "again") == ["first: done", "second: done", "main: up"]
    assert "(attempt 1, ready)" in agent.describe("again")
    assert "SandboxChanged" in {event["reason"] for event in agent.events("again")}
