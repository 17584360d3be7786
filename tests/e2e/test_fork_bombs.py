"""A fork bomb as people write it, beside ten innocent pods, where a cgroup holds it. Where none does, nothing bounds a
bomb between two rounds of eviction, and it would take all processes of the machine: there it is not tried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import monotonic
from ipc.k8s.eviction.signals import Signal
from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.innocents import Crowd
from tests.e2e.manifests import Json, container, pod
from tests.e2e.short_node import TEST_S, available, evicted, follow, of_condition, of_eviction, tell, until_evicted

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.podman,
    pytest.mark.slow,
    pytest.mark.timeout(TEST_S),
    pytest.mark.skipif("pids" not in (delegated_controllers() or ()), reason="no cgroup of this user limits processes"),
]

PIDS_LIMIT: Final = 200
GAP: Final = 800
"""Processes that the node can take until its threshold: more than one such pod may have, fewer than Podman's limit."""
ROUNDS_S: Final = 25.0
"""Two rounds of eviction, and some."""


def bomb() -> Json:
    """A pod that forks without an end. The first process stays whatever becomes of the others."""
    return pod("bomb", container(script="b(){ b|b& }; b; exec sleep 3600"), terminationGracePeriodSeconds=1)


def crowd_with_threshold(agent: Agent) -> tuple[Crowd, int]:
    """The innocents, and a threshold of pid.available that is met when others than these take some processes more."""
    agent.start()
    crowd = Crowd(agent)
    threshold = available(Signal.PID_AVAILABLE) - GAP
    agent.configure({"evictionHard": {"pid.available": str(threshold)}})
    agent.restart()
    return crowd, threshold


def cgroups_of_bomb(agent: Agent) -> list[Path]:
    """Cgroups of its container and those around it, up to the pod's, once it runs. Podman is asked once: its command is
    a process that has to begin beside a bomb."""
    agent.until_running(["bomb"])
    own = Path(f"/proc/{agent.eye.container('bomb', 'main').pid}/cgroup").read_text().rpartition("::")[2].strip()
    return [Path(f"/sys/fs/cgroup{path}") for path in (own, *list(Path(own).parents)[:2])]


def times_refused(directory: Path) -> int:
    """Times that a cgroup had all processes that it may have."""
    words = (directory / "pids.events").read_text().split()
    return int(words[words.index("max") + 1])


def test_a_bomb_within_its_limit_of_processes_troubles_nobody(new_agent: NewAgent) -> None:
    agent = new_agent(podPidsLimit=PIDS_LIMIT)
    crowd, threshold = crowd_with_threshold(agent)
    agent.write(bomb())
    cgroups = cgroups_of_bomb(agent)
    agent.until(lambda: any(map(times_refused, cgroups)), "the bomb has all processes that it may have")
    since = monotonic()
    agent.until(lambda: monotonic() - since > ROUNDS_S, "two rounds")
    assert available(Signal.PID_AVAILABLE) > threshold
    assert evicted(agent) == []
    crowd.assert_undisturbed()
    tell("fork bomb under podPidsLimit", {"short": 0.0}, crowd, "nobody")
    agent.remove("bomb")
    agent.until_gone(["bomb"])


def test_a_bomb_that_the_node_cannot_take_goes(new_agent: NewAgent) -> None:
    """Up to Podman's own limit of a container's processes."""
    agent = new_agent()
    crowd, threshold = crowd_with_threshold(agent)
    agent.write(bomb())
    steps = {
        "short": lambda: available(Signal.PID_AVAILABLE) < threshold,
        **of_condition(agent, "PIDPressure"),
        **of_eviction(agent, "bomb"),
    }
    seen = follow(agent, steps)
    assert "The node was low on resource: pids." in until_evicted(agent, "bomb")["message"]
    assert evicted(agent) == ["bomb"]
    crowd.assert_undisturbed()
    tell("fork bomb", seen, crowd, "bomb")
