"""Garbage goes: dead containers by policy, directories of pods that are gone. The rest stays."""

from __future__ import annotations

import pytest

from tests.e2e.agent import Agent, container_status
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.e2e.status_observer import Seen
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

FAST = {"maxContainerRestartPeriod": "1s"}


def dead(agent: Agent, name: str) -> list[Seen]:
    """Newest first."""
    return sorted((c for c in agent.eye.containers(name) if c.state == "exited"), key=lambda c: -c.attempt)


def kill(agent: Agent, name: str) -> None:
    """Kill its container, behind the agent's back; back when the next one runs."""
    before = agent.eye.container(name, "main")
    podman("kill", "--signal", "KILL", before.id)
    agent.until(lambda: container_status(agent.pods()[name]).get("restartCount") == before.attempt + 1, "restarted")
    agent.until_ready([name])


@pytest.mark.slow
def test_as_many_dead_containers_stay_as_configured(new_agent: NewAgent) -> None:
    agent = new_agent(containerGarbageCollection={"maxPerPodContainer": 2}, crashLoopBackOff=FAST)
    agent.start()
    agent.run(pod("twice", container(script="echo life $$; trap 'exit 0' TERM; while true; do sleep 1; done")))
    for _ in range(3):
        kill(agent, "twice")
    agent.until(lambda: [c.attempt for c in dead(agent, "twice")] == [2, 1], "the newest two stay")
    assert agent.cli("logs", "twice", "--previous").out.startswith("life ")
    logs = (agent.directory / "logs").glob("*_twice_*/main/*.log")
    assert sorted(path.name for path in logs) == ["1.log", "2.log", "3.log"], "the dead ones that stay keep theirs"


def test_beyond_the_nodes_maximum_only_what_is_needed_stays(new_agent: NewAgent) -> None:
    agent = new_agent(crashLoopBackOff=FAST)
    agent.start()
    agent.write(pod("job", container(script="echo done; exit 0"), restartPolicy="Never"))
    agent.run(pod("again", container(script="echo life; trap 'exit 0' TERM; while true; do sleep 1; done")))
    agent.until(lambda: agent.pods()["job"]["status"]["phase"] == "Succeeded", "the job is done")
    kill(agent, "again")
    pod_table = agent.eye.pod_table()
    # Not before: a round of the first agent would take the predecessor from under the second, which tells of its end.
    agent.configure({"containerGarbageCollection": {"maxContainers": 0}})
    agent.restart()  # The node worker looks for garbage of the whole node when it starts, and then once a minute.
    agent.until(lambda: dead(agent, "again") == [], "the predecessor of a running container goes")
    assert len([c for c in dead(agent, "job") if c.name == "main"]) == 1, "without it the job would run again"
    assert agent.cli("logs", "again", "--previous").out == "life\n", "logs do not depend on containers"
    assert agent.eye.pod_table() == pod_table
    agent.restart()
    assert agent.pods()["job"]["status"]["phase"] == "Succeeded"
    assert container_status(agent.pods()["again"])["restartCount"] == 1


@pytest.mark.slow
def test_directories_of_pods_that_vanished_while_nobody_looked_go(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("stays"), pod("vanishes"))
    uids = {name: shown["metadata"]["uid"] for name, shown in agent.pods().items()}
    logs = {name: agent.directory / "logs" / f"default_{name}_{uid}" for name, uid in uids.items()}
    assert all(directory.is_dir() for directory in logs.values())
    agent.stop()
    podman("pod", "rm", "--force", "--time", "0", agent.eye.container("vanishes", "main").podman_pod)
    agent.remove("vanishes")
    (agent.directory / "state" / "desired.json").unlink()
    of_pod = agent.directory / "state" / "pods" / uids["vanishes"]
    assert of_pod.is_dir()
    foreign = agent.directory / "logs" / "not_one_of-ours"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    link = agent.directory / "logs" / "default_link_1234"
    link.symlink_to(foreign)
    agent.start()
    agent.until(lambda: not logs["vanishes"].exists() and not of_pod.exists(), "its directories go")
    assert logs["stays"].is_dir()
    assert (foreign / "notes.txt").read_text() == "mine"
    assert link.is_symlink()
