"""Somebody else works on Podman: what is ours is put right, what is not ours is never touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent, container_status, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import IMAGE, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def test_a_killed_container_comes_back(agent: Agent) -> None:
    agent.run(pod("killed", container(), container("other")))
    before = agent.eye.running("killed")
    podman("kill", "--signal", "KILL", before["killed", "main"].id)
    agent.until(lambda: restart_count(agent.pods()["killed"]) == 1, "it is restarted")
    agent.until_ready(["killed"])
    status = container_status(agent.pods()["killed"])
    assert status["lastState"]["terminated"]["exitCode"] == 137
    now = agent.eye.running("killed")
    assert now["killed", "main"].id != before["killed", "main"].id
    assert status["containerID"] == f"podman://{now['killed', 'main'].id}"
    assert now["killed", "main"].attempt == 1
    for other in ("other", INFRA):
        assert now["killed", other].lifecycle == before["killed", other].lifecycle


def test_a_process_killed_behind_podmans_back_counts_the_same(agent: Agent) -> None:
    agent.run(pod("killed-process"))
    before = agent.eye.container("killed-process", "main")
    podman("unshare", "sh", "-c", f"kill -9 {before.pid}")  # a shell has its own: there may be no kill(1)
    agent.until(lambda: restart_count(agent.pods()["killed-process"]) == 1, "it is restarted")
    agent.until_ready(["killed-process"])
    assert container_status(agent.pods()["killed-process"])["lastState"]["terminated"]["exitCode"] == 137
    assert agent.eye.container("killed-process", "main").id != before.id


def test_a_removed_pod_comes_back(agent: Agent) -> None:
    agent.run(pod("removed", container(), container("other")))
    before = agent.eye.running("removed")
    podman("pod", "rm", "--force", "--time", "0", before["removed", INFRA].podman_pod)
    agent.until(lambda: len(agent.eye.running("removed")) == 3, "all of it runs again")
    agent.until_ready(["removed"])
    now = agent.eye.running("removed")
    assert {c.id for c in now.values()}.isdisjoint(c.id for c in before.values())
    assert len({c.podman_pod for c in now.values()}) == 1
    shown = {s["name"]: s["containerID"] for s in agent.pods()["removed"]["status"]["containerStatuses"]}
    assert shown == {name: f"podman://{c.id}" for (_, name), c in now.items() if name != INFRA}


def test_a_lost_sandbox_is_made_again(agent: Agent) -> None:
    agent.run(pod("no-infra"))
    before = agent.eye.running("no-infra")
    podman("kill", "--signal", "KILL", before["no-infra", INFRA].id)

    def is_new() -> bool:
        now = agent.eye.running("no-infra")
        return len(now) == 2 and now["no-infra", INFRA].id != before["no-infra", INFRA].id

    agent.until(is_new, "another sandbox with the container in it")
    agent.until_ready(["no-infra"])
    now = agent.eye.running("no-infra")
    assert now["no-infra", INFRA].attempt == 1
    assert now["no-infra", "main"].podman_pod == now["no-infra", INFRA].podman_pod
    agent.until(lambda: len(agent.eye.containers("no-infra", infra=True)) == 2, "nothing is left of the old sandbox")
    assert any(event["reason"] == "SandboxChanged" for event in agent.events("no-infra"))


def test_a_dead_predecessor_started_by_hand_is_removed(agent: Agent) -> None:
    agent.run(pod("twice"))
    first = agent.eye.container("twice", "main")
    podman("kill", "--signal", "KILL", first.id)
    agent.until(lambda: restart_count(agent.pods()["twice"]) == 1, "it is restarted")
    agent.until_ready(["twice"])
    second = agent.eye.container("twice", "main")
    podman("start", first.id)
    agent.until(lambda: ids_running(agent, "twice") == {second.id}, "only the successor runs")
    agent.until(lambda: first.id not in {c.id for c in agent.eye.containers("twice")}, "the other one is gone")
    assert agent.eye.container("twice", "main").lifecycle == second.lifecycle
    assert restart_count(agent.pods()["twice"]) == 1


@pytest.fixture
def strangers(agent: Agent) -> Iterator[dict[str, str]]:
    """Containers of nobody, of another instance that has no agent, and without a label in a pod of ours: ids."""
    agent.run(pod("hosts-a-stranger"))
    ours = agent.eye.container("hosts-a-stranger", "main")
    other = {**ours.labels, "rootlet.dev/instance": f"{agent.instance}-other"}
    labels = {"plain": {}, "other instance": other, "inside": {}}
    made: dict[str, str] = {}
    try:
        for kind, wanted in labels.items():
            arguments = [f"--label={key}={value}" for key, value in wanted.items()]
            arguments += [f"--pod={ours.podman_pod}"] if kind == "inside" else []
            made[kind] = podman("run", "--detach", *arguments, IMAGE, "sh", "-c", STAY).strip()
        yield made
    finally:
        podman("rm", "--force", "--ignore", "--time", "0", *made.values())


@pytest.mark.slow
def test_strangers_are_never_touched(agent: Agent, strangers: dict[str, str]) -> None:
    started = {kind: state_of(id) for kind, id in strangers.items()}
    assert {state.partition(" ")[0] for state in started.values()} == {"running"}
    # Every way by which something is found: a full look, housekeeping, a new agent, a sync of the pod itself.
    podman("kill", "--signal", "KILL", agent.eye.container("hosts-a-stranger", "main").id)
    agent.until(lambda: restart_count(agent.pods()["hosts-a-stranger"]) == 1, "it is restarted")
    agent.restart()
    agent.until_ready(["hosts-a-stranger"])
    observation_requests = agent.workers()["node"]["counters"]["runtime_calls"]
    agent.until(
        lambda: agent.workers()["node"]["counters"]["runtime_calls"] > observation_requests + 2, "it looked again"
    )
    assert {kind: state_of(id) for kind, id in strangers.items()} == started
    statuses = agent.pods()["hosts-a-stranger"]["status"]["containerStatuses"]
    assert [status["name"] for status in statuses] == ["main"]


@pytest.mark.slow
def test_a_pod_of_another_instance_is_never_touched(agent: Agent, new_agent: NewAgent) -> None:
    other = new_agent()
    other.start()
    for each in (agent, other):
        each.run(pod("same-name"))
    mine, theirs = agent.eye.pod_table("same-name"), other.eye.pod_table("same-name")
    assert len(mine) == len(theirs) == 2
    agent.remove("same-name")
    agent.until_gone(["same-name"])
    assert other.eye.pod_table("same-name") == theirs
    other.stop()
    agent.restart()
    agent.run(pod("same-name"))
    assert other.eye.pod_table("same-name") == theirs


def ids_running(agent: Agent, name: str) -> set[str]:
    return {c.id for c in agent.eye.containers(name) if c.state == "running"}


def state_of(id: str) -> str:
    return podman("inspect", "--format", "{{.State.Status}} {{.State.Pid}} {{.State.StartedAt}}", id).strip()
