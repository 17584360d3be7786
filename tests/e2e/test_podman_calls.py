"""Calls of Podman that a start, a restart and a stop of a pod make, on the real one: a bare pod takes 4, 2 and 1."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from typing import Final

import psutil
import pytest

from tests.bench.default_periods import set_default_periods
from tests.bench.simulated import text_of
from tests.e2e.agent import Agent, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PODS: Final = tuple(f"p-{number}" for number in range(10))
CALLS: Final = re.compile(r'^kubelet_runtime_operations_total\{operation_type="(\w+)"\} (\S+)$', re.MULTILINE)
OF_THE_NODE: Final = {"version", "status", "list_podsandbox", "list_containers", "image_status"}
"""Operations that are not a pod's: a relist, a ping, the image of all of them."""
MAKING: Final = {"run_podsandbox": 1, "create_container": 1, "start_container": 2}
RESTARTING: Final = {"create_container": 1, "start_container": 1}
REMOVING: Final = {"remove_podsandbox": 1}
LOOK: Final = {"container_status": 2}
"""The most that may be asked beside what is made: on a busy host a monitor's files do not always tell of the container
and of the sandbox's."""
HERD: Final = 20
"""Pods that are applied at once."""
HERDS_LOOKS: Final = {"image_status": 2, "container_status": HERD // 2}
"""The most that a herd may ask beside what it makes, all pods together. Its image is inspected a second time where the
first sandbox is the first that shows where Podman's list of images is."""
CONTAINER: Final = "main"
DEADLINE_S: Final = 60.0
QUIET_S: Final = 3.0


def all_counted(agent: Agent) -> Counter[str]:
    """By operation, since the agent was started."""
    found = CALLS.findall(text_of(agent.socket, "/metrics"))
    return Counter({name: int(float(count)) for name, count in found})


def counted(agent: Agent) -> Counter[str]:
    """`all_counted` of operations that are a pod's."""
    return Counter({name: count for name, count in all_counted(agent).items() if name not in OF_THE_NODE})


def calls_of_pods(agent: Agent) -> Counter[str]:
    """Once they stay the same: Podman's clean-ups are over, too, which come a second after an end."""
    seen = [counted(agent)]

    def is_quiet() -> bool:
        seen.append(counted(agent))
        return seen[-1] == seen[-2]

    agent.until(is_quiet, "no more calls", DEADLINE_S, QUIET_S)
    return seen[-1]


def calls_during(agent: Agent, act: Callable[[], None]) -> Counter[str]:
    before = calls_of_pods(agent)
    act()
    return calls_of_pods(agent) - before


def most(per_pod: dict[str, int]) -> Counter[str]:
    return Counter({operation: len(PODS) * count for operation, count in per_pod.items()})


@pytest.fixture
def agent(new_agent: NewAgent) -> Agent:
    """With the periods of a real node, so that no relist is there because of the tests."""
    made = new_agent()
    set_default_periods(made, {})
    made.start()
    return made


def test_a_start_a_restart_and_a_stop_ask_podman_for_little_more_than_they_change(agent: Agent) -> None:
    manifests = [pod(name, container(CONTAINER), terminationGracePeriodSeconds=1) for name in PODS]

    started = calls_during(agent, lambda: agent.run(*manifests))
    assert started <= most(MAKING | LOOK)
    assert started >= most(MAKING), "they are counted"

    def restart() -> None:
        for (_, name), running in agent.eye.running().items():
            if name == CONTAINER:
                os.kill(running.pid, signal.SIGKILL)
        agent.until(lambda: all(restart_count(p) == 1 and is_ready(p) for p in agent.pods().values()), "all again")

    restarted = calls_during(agent, restart)
    assert restarted <= most(RESTARTING | LOOK)
    assert restarted >= most(RESTARTING)

    def stop() -> None:
        agent.remove(*PODS)
        agent.until_gone(PODS, DEADLINE_S)

    stopped = calls_during(agent, stop)
    assert stopped <= most(REMOVING | LOOK)
    assert stopped >= most(REMOVING)


def herds_looks(agent: Agent, prefix: str) -> Counter[str]:
    """Count what pods that come at once ask beside what they make."""
    names = [f"{prefix}-{number}" for number in range(HERD)]
    manifests = "".join(f"---\n{json.dumps(pod(name, container(CONTAINER)))}\n" for name in names)
    calls_of_pods(agent)
    before = all_counted(agent)
    assert agent.cli("apply", "-f", "-", stdin=manifests).code == 0
    agent.until_ready(names, DEADLINE_S)
    calls_of_pods(agent)
    made = all_counted(agent) - before
    return Counter({operation: made[operation] for operation in HERDS_LOOKS})


@pytest.mark.slow
def test_a_herd_asks_as_little_beside_pods_of_an_agent_that_was_killed_as_on_an_empty_host(agent: Agent) -> None:
    first = herds_looks(agent, "first")
    assert first <= Counter(HERDS_LOOKS)
    for process in agent.marked_processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    agent.wait_end()
    agent.respawn()
    agent.until(lambda: agent.is_up(sources_ready=True), "the agent is up", DEADLINE_S)
    agent.until_ready([f"first-{number}" for number in range(HERD)], DEADLINE_S)
    second = herds_looks(agent, "second")
    assert second <= Counter(HERDS_LOOKS | {"image_status": 1})
