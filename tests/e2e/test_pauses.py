"""Pods that are paused and resumed, on real Podman: by the freezer of cgroups (v2), where those are this user's."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, Json, container_status, is_ready
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

TICKS = "trap 'echo ended; exit 0' TERM; while true; do echo tick; sleep 0.1; done"
ROOM_S = 5
"""In a probe, which has to fail twice: longer than anything waits here without a pause."""


def ticking(name: str) -> Json:
    """Says that it goes on, ten times a second, and is probed as often as may be."""
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": ROOM_S}
    return pod(name, container(script=TICKS, livenessProbe=probe), terminationGracePeriodSeconds=20)


def refusal(agent: Agent, name: str) -> str:
    """Message that comes instead of a pause; empty when the pod is paused."""
    done = agent.cli("pause", "pod", name)
    return done.err if done.code else ""


def paused(agent: Agent, *names: str) -> None:
    """Pause pods that run. Skips where nobody could."""
    for name in names:
        if why := refusal(agent, name):
            pytest.skip(f"containers cannot be frozen here: {why.strip()}")
        agent.until(functools.partial(is_paused, agent, name), f"{name} is paused")


def is_paused(agent: Agent, name: str) -> bool:
    return bool(agent.pods()[name]["status"].get("reason") == "Paused")


def ticks(agent: Agent, name: str) -> int:
    return agent.output(name).count("tick")


def is_frozen(pid: int) -> bool:
    """As the kernel says."""
    own = Path(f"/proc/{pid}/cgroup").read_text().rpartition("::")[2].strip()
    return "frozen 1" in Path(f"/sys/fs/cgroup{own}", "cgroup.events").read_text()


def test_who_cannot_be_paused_says_why_and_goes_on(agent: Agent) -> None:
    """Pausing needs containers in cgroups that this user may freeze."""
    agent.run(ticking("still"))
    resumed = agent.cli("resume", "pod", "still")
    assert (resumed.code, resumed.err) == (1, 'Error from server (Conflict): pod "still" is not paused\n')
    if not (why := refusal(agent, "still")):
        pytest.skip("this host can freeze containers")
    assert why.startswith('Error from server (Conflict): pod "still" cannot be paused: Podman says: ')
    assert "its containers need cgroups (v2) of their own below one that is delegated to this user" in why
    assert is_ready(agent.pods()["still"])


def test_a_paused_pod_stands_still_over_a_restart_and_goes_on_where_it_was(agent: Agent) -> None:
    agent.run(ticking("stands"))
    before, pid = container_status(agent.pods()["stands"]), agent.eye.container("stands", "main").pid
    agent.until(lambda: ticks(agent, "stands") > 2, "it ticks")
    paused(agent, "stands")
    status = agent.pods()["stands"]["status"]
    assert (status["phase"], is_ready(agent.pods()["stands"])) == ("Running", False)
    assert is_frozen(pid)
    heard = ticks(agent, "stands")
    again = agent.cli("pause", "pod", "stands")
    assert again.err == 'Error from server (Conflict): pod "stands" is paused already\n'
    agent.restart()
    agent.until(functools.partial(is_paused, agent, "stands"), "it is paused over a restart")
    assert ticks(agent, "stands") == heard, "nothing of it ran meanwhile"
    assert agent.cli("resume", "pod", "stands") == (0, "pod/stands resumed\n", "")
    agent.until_ready(["stands"])
    agent.until(lambda: ticks(agent, "stands") > heard, "it goes on")
    after = container_status(agent.pods()["stands"])
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0), "no probe has failed"
    assert {"Paused", "Resumed"} <= agent.reasons("stands").keys()


def test_a_paused_pod_ends_in_order_and_is_restarted(agent: Agent) -> None:
    """Both resume it first: a signal reaches no process that stands still."""
    agent.run(ticking("ends"), ticking("again"))
    paused(agent, "ends", "again")
    assert agent.cli("restart", "pod", "again", "--timeout=300s").code == 0
    agent.until_ready(["again"])
    agent.remove("ends", "again")
