"""Requests and limits on a real host: counted, enforced where the host lets us, and else said not to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

SAYS = f"cat /proc/self/oom_score_adj; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max; {STAY}"
SAID_LINES = 3
MIB = 1 << 20


def limited(name: str, limits: dict[str, str], requests: dict[str, str] | None = None) -> Json:
    return pod(name, container(script=SAYS, resources={"limits": limits, "requests": requests or {}}))


def said(agent: Agent, name: str) -> list[str]:
    agent.until_running([name])
    agent.until(lambda: agent.output(name).count("\n") == SAID_LINES, f"{name} has said all")
    return agent.output(name).split()


def test_a_pod_for_which_there_is_no_room_is_rejected(agent: Agent) -> None:
    agent.write(limited("huge", {}, {"memory": "1Pi"}))
    agent.until(lambda: agent.pods().get("huge", {}).get("status", {}).get("reason") == "OutOfmemory", "rejected")
    status = agent.pods()["huge"]["status"]
    assert status["phase"] == "Failed"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource: memory, requested: ")
    agent.remove("huge")


def test_limits_hold_or_are_said_not_to(agent: Agent) -> None:
    agent.write(limited("limited", {"cpu": "150m", "memory": "64Mi"}))
    words = said(agent, "limited")
    told = " ".join(agent.messages("limited", "UnsupportedField"))
    controllers = delegated_controllers() or frozenset()
    for name, enforced in (("cpu", "15000 100000"), ("memory", str(64 * MIB))):
        is_enforced = name in controllers
        assert (enforced in " ".join(words)) == is_enforced, words
        assert (name in told) != is_enforced, told
    agent.remove("limited")


def test_whom_the_kernel_kills_first(agent: Agent) -> None:
    """None is lower than our own score, which a user cannot go below."""
    own = int(Path("/proc/self/oom_score_adj").read_text())
    guaranteed: dict[str, str] = {"cpu": "10m", "memory": "16Mi"}
    scores: dict[str, Any] = {"guaranteed": max(own, -997), "nobody": 1000}
    agent.write(limited("guaranteed", guaranteed, guaranteed), limited("nobody", {}))
    assert {name: int(said(agent, name)[0]) for name in scores} == scores
    agent.remove("guaranteed", "nobody")
