"""Restart policies of single containers, and rules about their exit codes."""

from __future__ import annotations

import pytest

from tests.e2e.agent import Agent, Json, container_status, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.expected_histories import GATE, let_through, told_by
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

EXITS_42 = f"{GATE}; exit 42"


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    """One whose containers back off for a short time."""
    shared = new_shared_agent(crashLoopBackOff={"maxContainerRestartPeriod": "1s"})
    shared.start()
    return shared


def rule(action: str, code: int) -> Json:
    return {"action": action, "exitCodes": {"operator": "In", "values": [code]}}


def with_rule(script: str, action: str = "Restart") -> Json:
    return container(script=script, restartPolicy="Never", restartPolicyRules=[rule(action, 42)])


def until_phase(agent: Agent, name: str, phase: str) -> None:
    agent.until(lambda: agent.pods().get(name, {"status": {}})["status"].get("phase") == phase, f"{name} is {phase}")


def until_restarted(agent: Agent, name: str, times: int, container: str = "main") -> None:
    """So often or more."""

    def is_restarted() -> bool:
        return restart_count(agent.pods().get(name, {"status": {}}), container) >= times

    agent.until(is_restarted, f"{container} of {name} is restarted {times} times")


def test_an_exit_code_with_a_rule_restarts_what_is_never_restarted_otherwise(agent: Agent) -> None:
    agent.write(pod("ruled", with_rule("exit 42"), restartPolicy="Never"))
    agent.write(pod("other-code", with_rule("exit 41"), restartPolicy="Never"))
    until_phase(agent, "other-code", "Failed")
    assert container_status(agent.pods()["other-code"])["state"]["terminated"]["exitCode"] == 41
    assert restart_count(agent.pods()["other-code"]) == 0
    until_restarted(agent, "ruled", 2)
    assert agent.pods()["ruled"]["status"]["phase"] == "Running"
    last = container_status(agent.pods()["ruled"])["lastState"]["terminated"]
    assert last["exitCode"] == 42
    assert "      Restart on exit code 42\n" in agent.describe("ruled")
    agent.remove("ruled", "other-code")


@pytest.mark.slow
def test_a_containers_own_policy_counts_more_than_the_pods(agent: Agent) -> None:
    never = container("never", "exit 1", restartPolicy="Never")
    succeeds = container("succeeds", "true", restartPolicy="OnFailure")
    fails = container("fails", "exit 1", restartPolicy="OnFailure")
    agent.write(pod("own", never, succeeds, fails, restartPolicy="Always"))
    until_restarted(agent, "own", 2, "fails")
    shown = agent.pods()["own"]
    assert [restart_count(shown, name) for name in ("never", "succeeds")] == [0, 0]
    assert shown["status"]["phase"] == "Running"
    agent.write(pod("own-never", container("stays", restartPolicy="Always"), restartPolicy="Never"))
    agent.until_ready(["own-never"])
    agent.remove("own", "own-never")


@pytest.mark.slow
def test_on_failure_ends_with_the_first_success(agent: Agent) -> None:
    agent.write(pod("tries", container(script=f"{GATE}; exit 1"), restartPolicy="OnFailure"))
    for restarts in (1, 2):
        agent.until(lambda: ("tries", "main") in agent.eye.running("tries"), "it runs")
        let_through(agent, "tries", "main")
        until_restarted(agent, "tries", restarts)
    agent.write(pod("tries", container(script="true"), restartPolicy="OnFailure"))
    until_phase(agent, "tries", "Succeeded")


def test_a_rule_restarts_all_containers_in_their_sandbox(agent: Agent) -> None:
    inits = [container("setup", "echo done")]
    source, target = with_rule(EXITS_42, "RestartAllContainers"), container("target", f"echo up; {STAY}")
    agent.run(pod("all", source, target, initContainers=inits, restartPolicy="Never"))
    before = agent.eye.running("all")
    setup = container_status(agent.pods()["all"], "setup")["containerID"]
    let_through(agent, "all", "main")

    def all_again(times: int) -> bool:
        shown = agent.pods()["all"]
        return [restart_count(shown, name) for name in ("setup", "main", "target")] == [times] * 3

    agent.until(lambda: all_again(1), "each of them has begun once more")
    agent.until_ready(["all"])
    now = agent.eye.running("all")
    assert now["all", INFRA].lifecycle == before["all", INFRA].lifecycle
    for name in ("main", "target"):
        assert now["all", name].id != before["all", name].id
    assert container_status(agent.pods()["all"], "setup")["containerID"] != setup
    assert told_by(agent, "all") == ["setup: done", "target: up"]
    logs = (agent.directory / "logs").glob("*_all_*/target/*.log")
    assert sorted(path.name for path in logs) == ["0.log", "1.log"], "the log of the life before stays"
    conditions = {c["type"]: c["status"] for c in agent.pods()["all"]["status"]["conditions"]}
    assert conditions.get("AllContainersRestarting", "False") == "False"
    assert "BackOff" not in {event["reason"] for event in agent.events("all")}
    let_through(agent, "all", "main")
    agent.until(lambda: all_again(2), "each of them has begun a third time")
    assert "BackOff" in {event["reason"] for event in agent.events("all")}, "now it had to wait"


@pytest.mark.slow
def test_a_rule_of_a_sidecar_restarts_all_containers(agent: Agent) -> None:
    setup = container("setup", "echo done")
    all_again = rule("RestartAllContainers", 42)
    watcher = container("watcher", EXITS_42, restartPolicy="Always", restartPolicyRules=[all_again])
    agent.run(pod("watched", initContainers=[setup, watcher], restartPolicy="Never"))
    let_through(agent, "watched", "watcher")
    for name in ("setup", "watcher", "main"):
        until_restarted(agent, "watched", 1, name)
    agent.until_ready(["watched"])
    agent.remove("watched")
