"""The agent's own directories go away while it runs: no pod ends, new ones start, and the next agent knows them all."""

from __future__ import annotations

import json
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ipc.k8s.kubeconfig.types import CLIENT_CERTIFICATE
from supervisor.record.node_events import BOOT_FILE
from tests.e2e.agent import Agent, free_ports, restart_count
from tests.e2e.cluster import running_cluster
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, config_map, container, pod
from tests.support.podman_service import podman
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LOST: Final = "StateFilesLost"


def _apply(agent: Agent, *objects: Json) -> None:
    done = agent.cli("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert done.code == 0, done.err


def _until_looked(agent: Agent) -> None:
    """Wait for a look at all that is there now: it misses a file, and comes to the others after that."""
    (agent.state / BOOT_FILE).unlink()
    agent.until((agent.state / BOOT_FILE).exists, "the agent has looked at its files")


def _with_volumes() -> Json:
    mounts = [{"name": "config", "mountPath": "/config"}, {"name": "room", "mountPath": "/room"}]
    volumes = [{"name": "config", "configMap": {"name": "settings"}}, {"name": "room", "emptyDir": {}}]
    return pod("volumes", container(volumeMounts=mounts), volumes=volumes)


def _state(agent: Agent) -> None:
    _removed(agent.state)


def _applied(agent: Agent) -> None:
    _removed(agent.state / "applied")


def _removed(directory: Path) -> None:
    """Gone at once, whatever the agent writes there meanwhile."""
    shutil.rmtree(directory.rename(directory.with_name("gone")))


def _contents(agent: Agent) -> None:
    for path in agent.state.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("vanish", [_state, seldom(_contents), seldom(_applied)])
def test_no_pod_ends_and_new_ones_start(new_agent: NewAgent, vanish: Callable[[Agent], None]) -> None:
    agent = new_agent()
    agent.start()
    agent.write(pod("file"))
    _apply(agent, config_map("settings", mode="kept"), _with_volumes(), pod("applied"))
    names = ["file", "volumes", "applied"]
    agent.until_ready(names)
    before = {name: agent.eye.pod_table(name) for name in names}
    vanish(agent)
    _apply(agent, pod("later"))
    agent.run(pod("new"))
    agent.until_ready(["later"])
    agent.until(lambda: any(event["reason"] == LOST for event in agent.events()), "it is told")
    assert agent.cli("delete", "pod", "later").code == 0
    assert {name: agent.eye.pod_table(name) for name in names} == before
    assert [event["count"] for event in agent.events() if event["reason"] == LOST] == [1]

    podman("kill", "--signal", "KILL", agent.eye.container("volumes", "main").id)
    agent.until(lambda: restart_count(agent.pods()["volumes"]) == 1, "a container begins anew with its volumes")
    agent.until_ready(["volumes"])
    assert agent.inside("volumes", "cat /config/mode; touch /room/x && echo") == "kept"

    before = {name: agent.eye.pod_table(name) for name in names}
    agent.restart()
    agent.until_ready([*names, "new"])
    assert {name: agent.eye.pod_table(name) for name in names} == before
    assert set(agent.pods()) == {*names, "new"}
    assert "settings" in agent.cli("get", "configmaps").out


@pytest.mark.slow
def test_applied_objects_that_went_away_while_no_agent_ran(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    _apply(agent, pod("applied"))
    agent.until_ready(["applied"])
    before = agent.eye.pod_table("applied")
    agent.stop()
    _applied(agent)
    agent.start()
    agent.until(lambda: any(event["reason"] == LOST for event in agent.events()), "it is told")
    _apply(agent, pod("later"))
    agent.until_ready(["applied", "later"])
    assert agent.eye.pod_table("applied") == before


@pytest.mark.parametrize("vanish", [_state, seldom(_contents)])
def test_the_servers_certificate_and_what_was_applied_last_are_there_after_a_restart(
    new_agent: NewAgent, vanish: Callable[[Agent], None]
) -> None:
    """The next apply knows that a manifest has set a label, and that a command has set the other one."""
    (port,) = free_ports(1)

    def served() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=5.0)

    agent = new_agent(server={"port": port, "authentication": {"anonymous": {"enabled": True}}})
    agent.start()
    _apply(agent, pod("web", labels={"app": "web", "of": "manifest"}))
    assert agent.cli("label", "pod", "web", "by=hand").code == 0
    agent.until_ready(["web"])
    profile = agent.state / "seccomp" / "own" / "audit.json"
    profile.parent.mkdir(parents=True)
    profile.write_text("{}")
    before, certificate = agent.eye.pod_table("web"), served()
    _until_looked(agent)
    vanish(agent)
    agent.run(pod("new"))
    agent.until(profile.exists, "files are back")
    agent.until(lambda: "pki/" in "".join(_told(agent)), "it is told")
    assert len(_told(agent)) == 2, "and that of the one file before"
    agent.restart()
    agent.until_ready(["web", "new"])
    assert served() == certificate
    _apply(agent, pod("web", labels={"app": "web"}))
    assert agent.get("/api/v1/namespaces/default/pods/web")["metadata"]["labels"] == {"app": "web", "by": "hand"}
    assert agent.eye.pod_table("web") == before


def _told(agent: Agent) -> list[str]:
    return [event["message"] for event in agent.events() if event["reason"] == LOST for _ in range(event["count"])]


def test_a_node_keeps_its_identity(new_agent: NewAgent, tmp_path: Path) -> None:
    """The cluster signs nothing more, and lets the node in."""
    with running_cluster() as cluster:
        agent = new_agent()
        cluster.bootstrap(agent, tmp_path)
        agent.start()
        cluster.schedule(pod("before"))
        agent.until(lambda: cluster.is_ready("before"), "the pod is ready")
        running = agent.eye.pod_table("before")
        identity = agent.state / "pki" / CLIENT_CERTIFICATE
        certificate = identity.read_bytes()
        _until_looked(agent)
        cluster.do(lambda server: server.signing.approves.clear())
        _state(agent)
        agent.until(identity.exists, "files are back")
        agent.restart()
        cluster.schedule(pod("after"))
        agent.until(lambda: cluster.is_ready("after"), "pods come")
        assert identity.read_bytes() == certificate
        assert agent.eye.pod_table("before") == running
