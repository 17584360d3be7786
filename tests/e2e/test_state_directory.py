"""The agent's own directories go away while it runs: no pod ends, new ones start, and the next agent knows them all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Final

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, config_map, container, pod
from tests.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LOST: Final = "StateFilesLost"


def _apply(agent: Agent, *objects: Json) -> None:
    done = agent.cli("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert done.code == 0, done.err


def _with_volumes() -> Json:
    mounts = [{"name": "config", "mountPath": "/config"}, {"name": "room", "mountPath": "/room"}]
    volumes = [{"name": "config", "configMap": {"name": "settings"}}, {"name": "room", "emptyDir": {}}]
    return pod("volumes", container(volumeMounts=mounts), volumes=volumes)


def _state(agent: Agent) -> None:
    shutil.rmtree(agent.state)


def _applied(agent: Agent) -> None:
    shutil.rmtree(agent.state / "applied")


def _contents(agent: Agent) -> None:
    for path in agent.state.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("vanish", [_state, _contents, _applied])
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
