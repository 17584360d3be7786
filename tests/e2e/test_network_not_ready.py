"""A host without the program that makes pods' networks: it says so, and what needs none runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.k8s.network.network_programs import SLIRP4NETNS, program_problem
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import podman_version

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PROGRAMS = ("slirp4netns", "pasta")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory with all programs of PATH but those."""
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(directory).glob("*"):
            if program.name not in PROGRAMS:
                link = tmp_path / program.name
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return tmp_path


def ready(agent: Agent) -> tuple[str, str]:
    """Status and message of the node's condition Ready."""
    [node] = agent.get("/api/v1/nodes")["items"]
    [found] = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
    return found["status"], found["message"]


def test_only_pods_of_the_hosts_network_start_until_the_program_is_there(new_agent: NewAgent, path: Path) -> None:
    agent = new_agent()
    agent.environment["PATH"] = str(path)
    agent.start()
    agent.until(lambda: ready(agent)[0] == "False", "the node is not ready")
    problem = ready(agent)[1]
    assert problem.startswith("container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady ")
    assert "NodeReady" not in agent.reasons("e2e")
    agent.run(pod("hosts", container(script=STAY), hostNetwork=True))
    agent.write(pod("own", container(script=STAY)))
    agent.until(lambda: "NetworkNotReady" in agent.reasons("own"), "it waits for a network")
    assert agent.reasons("own")["NetworkNotReady"] == f"network is not ready: {problem}"
    assert not agent.eye.containers("own")
    for program in PROGRAMS:
        found = [Path(each) / program for each in os.environ["PATH"].split(os.pathsep)]
        if there := next((each for each in found if each.exists()), None):
            (path / program).symlink_to(there)
    agent.until(lambda: ready(agent)[0] == "True", "the node is ready", 60)
    agent.until(lambda: "NodeReady" in agent.reasons("e2e"), "an event says so")
    agent.until(lambda: bool(agent.eye.running("own")), "it has its network", 90)


def test_a_network_that_podman_has_no_more_is_told_and_no_pod_is_made(new_agent: NewAgent) -> None:
    problem = program_problem(SLIRP4NETNS, podman_version())
    if not problem:
        pytest.skip(f"Podman {podman_version()} has {SLIRP4NETNS}")
    agent = new_agent(podNetwork={"mode": SLIRP4NETNS})
    agent.start()
    agent.until(lambda: problem in ready(agent)[1], "the node says why it is not ready")
    agent.write(pod("own", container(script=STAY)))
    agent.until(lambda: "NetworkNotReady" in agent.reasons("own"), "its pods say so, too")
    assert not agent.eye.containers("own")
    checked = agent.cli("doctor", "--config", str(agent.config))
    assert checked.code == 1
    assert problem in checked.out
