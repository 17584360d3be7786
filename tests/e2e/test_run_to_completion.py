"""Pods that are done one day: their phase is final, whatever becomes of the agent, and their logs stay readable."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.e2e.agent import Agent, Json, container_status
from tests.e2e.manifests import container, pod
from tests.e2e.status_observer import INFRA, Seen
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

COUNTS = "try=1; while [ $try -le 2 ]; do echo $try | nc -l -p 9000 >/dev/null && try=$((try + 1)); done"
"""Remembers how often it was asked: a new container has a new file system. Done after the second time."""
SECOND_TRY = """
until try=$(nc 127.0.0.1 9000 </dev/null 2>/dev/null) && [ -n "$try" ]; do sleep 0.1; done
echo "try $try"
[ "$try" -ge 2 ]
"""
"""Fails the first time."""

PODS: Mapping[str, Json] = {
    "never-ok": pod("never-ok", container(script="echo said; exit 0"), restartPolicy="Never"),
    "never-bad": pod("never-bad", container(script="echo said; exit 7"), restartPolicy="Never"),
    "never-mixed": pod(
        "never-mixed",
        container(script="echo said; exit 0"),
        container("other", "exit 1"),
        restartPolicy="Never",
    ),
    "on-failure-ok": pod("on-failure-ok", container(script="echo said; exit 0"), restartPolicy="OnFailure"),
    "second-try": pod(
        "second-try", container(script=SECOND_TRY), container("counter", COUNTS), restartPolicy="OnFailure"
    ),
}
EXPECTED = {
    # phase, exit code and restarts of `main`, STATUS of `get pods`
    "never-ok": ("Succeeded", 0, 0, "Completed"),
    "never-bad": ("Failed", 7, 0, "Error"),
    "never-mixed": ("Failed", 0, 0, "Error"),
    "on-failure-ok": ("Succeeded", 0, 0, "Completed"),
    "second-try": ("Succeeded", 0, 1, "Completed"),
}


Remains = dict[tuple[str, str, int], Seen]
"""Containers of pods that are done, as Podman has them, by pod, container and attempt."""


@pytest.fixture(scope="module")
def done(agent: Agent) -> Remains:
    """Every pod has come to its end, and Podman has cleaned up after each container: before that its word for one that
    has ended is *running* or *stopped*, and its exit code 0."""
    agent.write(*PODS.values())
    until_done(agent)
    agent.until(lambda: {c.state for c in agent.eye.containers(infra=True)} == {"exited"}, "Podman has cleaned up")
    return remains(agent)


def until_done(agent: Agent) -> None:
    """Sandboxes too: they go when the phase is final."""
    wanted = {name: phase for name, (phase, *_) in EXPECTED.items()}
    agent.until(lambda: phases(agent) == wanted, "every pod is done")
    agent.until(lambda: not agent.eye.running(), "nothing runs any more")


def phases(agent: Agent) -> dict[str, str]:
    return {name: pod["status"]["phase"] for name, pod in agent.pods().items()}


def remains(agent: Agent) -> Remains:
    found = agent.eye.containers(infra=True)
    by_name = {(c.pod, c.name, c.attempt): c for c in found}
    assert len(by_name) == len(found), "made twice"
    return by_name


def identities(found: Remains) -> dict[tuple[str, str, int], tuple[str, int, int]]:
    """Without Podman's word for the state, which may be another after a look of somebody's."""
    return {key: (seen.id, seen.started_at, seen.exit_code) for key, seen in found.items()}


def ends(agent: Agent) -> dict[str, list[Json]]:
    """State and restarts of every container, as the agent tells them."""
    return {
        name: [{**s["state"]["terminated"], "restarts": s["restartCount"]} for s in pod["status"]["containerStatuses"]]
        for name, pod in agent.pods().items()
    }


@pytest.mark.parametrize("name", PODS)
def test_how_it_ended(agent: Agent, done: Remains, name: str) -> None:
    phase, exit_code, restarts, word = EXPECTED[name]
    shown = agent.pods()[name]
    status = container_status(shown)
    assert (shown["status"]["phase"], status["state"]["terminated"]["exitCode"]) == (phase, exit_code)
    assert status["restartCount"] == restarts
    seen = done[name, "main", restarts]
    assert seen.exit_code == exit_code
    assert status["containerID"] == f"podman://{seen.id}"
    assert done[name, INFRA, 0].state != "running"
    assert agent.cli("get", "pod", name).out.splitlines()[1].split()[2] == word


def test_on_failure_was_tried_again(agent: Agent, done: Remains) -> None:
    assert agent.cli("logs", "second-try", "-c", "main").out == "try 2\n"
    assert agent.cli("logs", "second-try", "-c", "main", "--previous").out == "try 1\n"
    assert {attempt for pod, name, attempt in done if (pod, name) == ("second-try", "counter")} == {0}


@pytest.mark.parametrize("how", [seldom("restart"), "kill -9"])
def test_nothing_of_it_changes_with_the_agent(agent: Agent, done: Remains, how: str) -> None:
    before = ends(agent)
    if how == "restart":
        agent.restart()
    else:
        agent.kill_and_recover("master")
    until_done(agent)
    assert ends(agent) == before
    # A pod that is begun while they are known shows that everything was looked at.
    agent.run(pod("begun-later"))
    agent.remove("begun-later")
    agent.until_gone(["begun-later"])
    assert identities(remains(agent)) == identities(done)
    for name in ("never-ok", "never-bad", "on-failure-ok"):
        assert agent.cli("logs", name, "-c", "main") == (0, "said\n", "")


def test_who_is_done_goes_with_its_file(agent: Agent, done: Remains) -> None:
    agent.remove("never-bad", "second-try")
    agent.until_gone(["never-bad", "second-try"])
    kept = {key: seen for key, seen in done.items() if key[0] not in ("never-bad", "second-try")}
    assert identities(remains(agent)) == identities(kept)


# --- with init containers ---

INIT_ENDS: Mapping[str, tuple[str, str, Json]] = {
    # restart policy, script of the second of two init containers; what is told in the end
    "init-ok": (
        "Never",
        "exit 0",
        {"phase": "Succeeded", "init": [(0, 0), (0, 0)], "main": "Completed", "word": "Completed"},
    ),
    "init-bad": (
        "Never",
        "exit 3",
        {"phase": "Failed", "init": [(0, 0), (3, 0)], "main": "PodInitializing", "word": "Init:Error"},
    ),
}


@pytest.mark.parametrize("name", INIT_ENDS)
def test_how_a_pod_with_init_containers_ends(agent: Agent, name: str) -> None:
    policy, script, expected = INIT_ENDS[name]
    inits = [container("first", "exit 0"), container("second", script)]
    agent.write(pod(name, container(script="exit 0"), initContainers=inits, restartPolicy=policy))
    agent.until(lambda: agent.pods().get(name, {}).get("status", {}).get("phase") == expected["phase"], "it is done")
    shown = agent.pods()[name]["status"]
    ends = [(s["state"]["terminated"]["exitCode"], s["restartCount"]) for s in shown["initContainerStatuses"]]
    assert ends == expected["init"]
    assert [s["name"] for s in shown["initContainerStatuses"]] == ["first", "second"]
    [main] = shown["containerStatuses"]
    state = main["state"].get("terminated") or main["state"]["waiting"]
    assert state["reason"] == expected["main"]
    initialized = next(c for c in shown["conditions"] if c["type"] == "Initialized")
    assert initialized["status"] == str(expected["phase"] == "Succeeded")
    assert agent.cli("get", "pod", name).out.splitlines()[1].split()[2] == expected["word"]
    agent.remove(name)
    agent.until_gone([name])
