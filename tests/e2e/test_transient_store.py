"""Podman's records of containers lie in memory (`podman.store: transient`), and the host goes down: nothing is lost."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from supervisor.cli.configuration import EXIT_CONFIG
from supervisor.podman_store import FILE as NOTE
from tests.e2e.agent import Agent, Json
from tests.e2e.booted_host import BootedHost
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.volumes import claim, ephemeral, mount, mounting, wish
from tests.support.podman_service import IMAGE, STORE, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ID_CHARS: Final = 64
EACH: Final = 5
"""Pods of each kind."""
DONE: Final = container(script="echo said; exit 0")
CRASHES: Final = container(script="echo said; exit 3")
STAYS: Final = container(script=f"echo said; {STAY}")
INIT: Final = container("init", "echo said; exit 0")
SIDECAR: Final = {**container("side", f"echo said; {STAY}"), "restartPolicy": "Always"}
KINDS: Final[dict[str, tuple[Json, Json]]] = {
    "web": (STAYS, {}),
    "never": (STAYS, {"restartPolicy": "Never"}),
    "done": (DONE, {"restartPolicy": "Never"}),
    "failed": (CRASHES, {"restartPolicy": "Never"}),
    "succeeded": (DONE, {"restartPolicy": "OnFailure"}),
    "retried": (CRASHES, {"restartPolicy": "OnFailure"}),
    "loops": (DONE, {}),
    "begun": (DONE, {"restartPolicy": "Never", "initContainers": [INIT, SIDECAR]}),
    "looked-at": (STAYS, {"ephemeralContainers": [container("look", "echo said; exit 5")]}),
    "initializing": (STAYS, {"restartPolicy": "Never", "initContainers": [INIT, container("second", STAY)]}),
}
ENDED: Final = {"done": "Succeeded", "failed": "Failed", "succeeded": "Succeeded", "begun": "Succeeded"}
LOST: Final = (137, "ContainerStatusUnknown")


def containers(agent: Agent) -> dict[tuple[str, str], Json]:
    """Statuses of all containers, by pod and name."""
    return {
        (name, status["name"]): status
        for name, found in agent.pods().items()
        for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for status in found["status"].get(field, ())
    }


def told_ends(agent: Agent) -> dict[str, Json]:
    """Every end that a status tells, by the container's id."""
    states = (status.get(when, {}) for status in containers(agent).values() for when in ("state", "lastState"))
    ends = (state["terminated"] for state in states if "terminated" in state)
    return {end["containerID"]: end for end in ends if "containerID" in end}


def phases(agent: Agent) -> dict[str, str]:
    return {name: found["status"].get("phase", "") for name, found in agent.pods().items()}


def runs_by_log(agent: Agent) -> dict[str, int]:
    """How often each attempt of each container has begun, by its log."""
    logs = Path(agent.settings["podLogsDir"])
    return {str(file.relative_to(logs)): file.read_text().count(" said\n") for file in logs.glob("*/*/*.log")}


@pytest.mark.parametrize("store", ["default", "transient"], indirect=True)
def test_a_power_cut_under_many_pods_of_every_kind_loses_no_end_and_repeats_no_run(
    host: BootedHost, new_agent: NewAgent, store: str
) -> None:
    agent = host.new_agent(new_agent)
    pods = {
        f"{kind}-{n}": pod(f"{kind}-{n}", main, **spec) for kind, (main, spec) in KINDS.items() for n in range(EACH)
    }
    agent.write(*pods.values())
    ended = {name: ENDED[kind] for name in pods if (kind := name.rpartition("-")[0]) in ENDED}
    agent.until(lambda: ended.items() <= phases(agent).items(), "all jobs have ended")
    looking = [(f"looked-at-{n}", "look") for n in range(EACH)]
    agent.until(lambda: all("terminated" in containers(agent)[key]["state"] for key in looking), "all have looked")
    looping = [(f"{kind}-{n}", "main") for kind in ("retried", "loops") for n in range(EACH)]
    agent.until(lambda: all(containers(agent)[key]["restartCount"] for key in looping), "all that loops has restarted")
    running = [
        (f"{kind}-{n}", name) for kind, name in (("never", "main"), ("initializing", "second")) for n in range(EACH)
    ]
    agent.until(lambda: all("running" in containers(agent)[key]["state"] for key in running), "the others run")
    before, ends = containers(agent), told_ends(agent)
    host.power_cut(agent)
    assert bool(podman("ps", "--all", "--quiet")) == (store == "default"), "the other one is empty"
    agent.start()
    agent.until_ready([name for name in pods if name.startswith(("web", "looked-at"))])
    agent.until(lambda: ended.items() <= phases(agent).items(), "what had ended is known to have ended")
    agent.until(
        lambda: all("terminated" in containers(agent)[key]["state"] for key in running), "none of it runs again"
    )
    after = containers(agent)
    assert [key for key in before if after[key]["restartCount"] < before[key]["restartCount"]] == []
    again = told_ends(agent)
    assert {id: again[id] for id in ends if id in again} == {id: ends[id] for id in ends if id in again}
    kept = {before[key]["state"]["terminated"]["containerID"] for key in before if key[0] in ended and key[1] != "side"}
    assert kept <= again.keys(), "of a job every end is told"
    for key in running:
        end = after[key]["state"]["terminated"]
        assert (end["exitCode"], end["reason"]) == LOST, key
        assert phases(agent)[key[0]] == "Failed"
    for n in range(EACH):
        web = after[f"web-{n}", "main"]
        assert (web["restartCount"], web["lastState"]["terminated"]["exitCode"]) == (1, 137)
        assert agent.cli("logs", "--previous", f"web-{n}").out.split() == ["said"]
        assert after[f"looked-at-{n}", "look"]["state"] == before[f"looked-at-{n}", "look"]["state"]
    assert {file: runs for file, runs in runs_by_log(agent).items() if runs > 1} == {}, "no attempt has run twice"


def test_volumes_keep_their_data_and_nothing_is_left_of_layers(host: BootedHost, new_agent: NewAgent) -> None:
    agent = host.new_agent(new_agent)
    name = f"{agent.instance}-data"
    volumes = [claim("data", name), ephemeral("own")]
    agent.write(wish(name))
    agent.run(mounting("keeps", volumes, mount("data", "/data"), mount("own", "/own")))
    agent.inside("keeps", "echo kept > /data/file; echo kept > /own/file; echo gone > /file")
    mine = podman("create", "--rm", IMAGE, "sleep", "1000", store="default")
    layers = host.disk / "graph" / "overlay"
    before = {path.name for path in layers.iterdir()}
    host.power_cut(agent)
    agent.start()
    agent.until_ready(["keeps"])
    assert agent.inside("keeps", "cat /data/file /own/file").split() == ["kept", "kept"]
    records = [layers.parent / "overlay-layers" / name for name in ("layers.json", "volatile-layers.json")]
    recorded = {layer["id"] for file in records for layer in json.loads(file.read_text())}
    lost = {id for id in before - recorded if len(id) == ID_CHARS}
    assert lost, "the pod's containers had layers"
    agent.until(lambda: not lost & {path.name for path in layers.iterdir()}, "their layers are removed")
    podman("start", mine.strip(), store="default")
    assert podman("rm", "--force", "--time", "0", mine.strip(), store="default"), "the user's own container stays"


@pytest.mark.parametrize("note", ["noted", "lost"])
@pytest.mark.parametrize("first", ["default", "transient"])
def test_no_pod_is_left_behind_in_the_other_store(
    host: BootedHost, new_agent: NewAgent, monkeypatch: pytest.MonkeyPatch, first: str, note: str
) -> None:
    second = {"default": "transient", "transient": "default"}[first]
    monkeypatch.setenv(STORE, first)
    agent = host.new_agent(new_agent)
    agent.run(pod("web", STAYS))
    agent.stop()
    if note == "lost":
        (agent.state / NOTE).unlink()
    monkeypatch.setenv(STORE, second)
    agent.configure({"podman": {"service": "own", "store": second}})
    agent.respawn()
    assert agent.wait_end() == EXIT_CONFIG
    refused = agent.log_text().strip().splitlines()[-1]
    assert f"podman.store: 1 pods of this instance are in the {first} store (default/web)" in refused
    subprocess.run(refused.split("or end them: ")[1], shell=True, check=True)
    agent.start()
    agent.until_ready(["web"])
    assert agent.output("web").split() == ["said", "said"]
