"""kill -9 and hangs of every process of the agent: nothing is lost, nothing runs twice, nothing is restarted."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.agent import Agent, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, pod, pods
from tests.e2e.status_observer import INFRA
from tests.support.variants import often

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PODS = 12
"""Number of pods that run, and of pods that start."""
STARTED_BEFORE_THE_KILL = 2
ROLES = ("master", "zygote", "pods-0", "pods-1", "node", "api", "dialer", "podman")
OFTEN = ("podman",)
"""Processes whose deaths while pods start are tried in every run."""
WITH_PODMAN = ("master", "zygote", "podman")
"""Podman's service goes with them."""
MOST_CUT_OFF = 4
"""Starts that are under way at a time: as many calls as may change something, two for each CPU of the smallest host."""
HANGING = ("pods-0", "pods-1", "node", "api", "dialer")


@pytest.fixture(scope="module")
def running(agent: Agent) -> Agent:
    """An agent with pods that run."""
    agent.run(*pods("run", PODS).values())
    return agent


def was_cut_off(found: Json) -> bool:
    """Podman went while it started a container, and has told that as a failed start: it is tried again."""
    (status,) = found["status"]["containerStatuses"]
    last = status.get("lastState", {}).get("terminated", {})
    return restart_count(found) == 1 and last.get("reason") == "ContainerCannotRun"


@pytest.mark.parametrize("role", often(ROLES, *(role for role in ROLES if role not in ("zygote", "pods-1"))))
def test_death_while_pods_run(running: Agent, role: str) -> None:
    before, house = running.eye.pod_table(), running.house()
    assert len(before) == 2 * PODS
    running.kill_and_recover(role)
    running.until_ready(pods("run", PODS))
    running.assert_works(pod(f"after-{role}"))
    assert running.eye.pod_table() == before
    assert all(c.state == "running" for c in running.eye.containers(infra=True)), "dead containers were left behind"
    assert {restart_count(pod) for pod in running.pods().values()} == {0}
    running.until(lambda: running.house() == house, f"{running.house()} is as before: {house}")


@pytest.mark.parametrize("role", often(ROLES, *OFTEN))
def test_death_while_pods_start(running: Agent, role: str) -> None:
    before, house = running.eye.pod_table(), running.house()
    names = pods(f"start-{role}", PODS)
    ready: set[str] = set()

    def some_started() -> bool:
        ready.update(name for name, pod in running.pods().items() if name in names and is_ready(pod))
        return len(ready) >= STARTED_BEFORE_THE_KILL

    running.write(*names.values())
    running.kill_and_recover(role, when=some_started)
    assert len(ready) < PODS, "the pods started faster than the test looked"
    running.until_ready(names)
    now = running.eye.pod_table()
    assert before.items() <= now.items()
    assert now.keys() == before.keys() | {(name, part) for name in names for part in ("main", INFRA)}
    shown = running.pods()
    uids = [shown[name]["metadata"]["uid"] for name in names]
    running.until(lambda: not running.eye.lost_monitors(uids), "containers that Podman has lost are ended")
    cut_off = {name for name in names if role in WITH_PODMAN and was_cut_off(shown[name])}
    twice = [c.podman_name for c in running.eye.containers() if c.pod in names.keys() - cut_off and c.attempt]
    ends = [shown[n]["status"]["containerStatuses"][0].get("lastState") for n in names if restart_count(shown[n])]
    assert twice == [], f"containers that were made twice: {ends}\n{running.story()}"
    assert {restart_count(shown[name]) for name in names.keys() - cut_off} == {0}
    assert len(cut_off) <= MOST_CUT_OFF, ends
    running.remove(*names)
    running.until_gone(names)
    assert running.eye.pod_table() == before
    running.until(lambda: running.house() == house, f"{running.house()} is as before: {house}")


@pytest.mark.slow
def test_stopped_processes_are_continued(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(*pods("run", 6).values())
    before, workers, house = agent.eye.pod_table(), agent.workers(), agent.house()
    for role in HANGING:
        agent.kill(role, signal.SIGSTOP)
    agent.until(
        lambda: all(
            now["incarnation"] == workers[name]["incarnation"] and now["state"] == "Running"
            for name, now in agent.workers().items()
            if name in HANGING
        ),
        "every stopped process goes on",
    )
    agent.assert_works(pod("after-hang"))
    assert agent.eye.pod_table() == before
    agent.until(lambda: agent.house() == house, f"{agent.house()} is as before: {house}")
    for role in HANGING:
        assert agent.workers()[role]["deaths"] == 0, role
