"""The node runs short of something because of one pod: that pod goes, the others notice nothing.

Each test prints a line of what it measured (`tests/e2e/short_node.py`), for docs/eviction.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from ipc.k8s.eviction.signals import Signal
from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.innocents import Crowd
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.short_node import (
    COLLECTS_ALL,
    MIB,
    TEST_S,
    Step,
    assert_told,
    available,
    disk_agent,
    evicted,
    follow,
    has_condition,
    hog,
    imagefs_agent,
    import_image,
    limit_memory,
    memory_told,
    node_condition,
    of_condition,
    of_eviction,
    tell,
    until_relieved,
    with_volume,
    writes,
)
from tests.support.podman_service import image_exists

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(TEST_S)]

UNUSED: Final = "localhost/rootlet-test-unused:latest"
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


def assert_alone(agent: Agent, name: str, crowd: Crowd) -> None:
    """Nobody else was troubled."""
    assert evicted(agent) == [name]
    crowd.assert_undisturbed()


def metric(agent: Agent, sample: str) -> str:
    """Value of one sample of the agent's metrics; empty when it is not there."""
    told = agent.cli("get", "--raw", "/metrics")
    assert told.code == 0, told.err
    [*found] = [line.rpartition(" ")[2] for line in told.out.splitlines() if line.startswith(f"{sample} ")]
    return found[0] if found else ""


@pytest.mark.slow
def test_a_pod_that_takes_the_memory_goes(new_agent: NewAgent) -> None:
    agent = new_agent(evictionPressureTransitionPeriod="5s")
    agent.start()
    crowd = Crowd(agent)
    room = limit_memory(agent)
    with memory_told(agent):
        agent.write(pod("hog", hog(room.left + room.gap)))
        steps = {"short": lambda: room.is_short, **of_condition(agent, "MemoryPressure"), **of_eviction(agent, "hog")}
        seen = follow(agent, steps)
        assert_told(agent, "hog", "memory")
        assert "Container main was using" in agent.pods()["hog"]["status"]["message"]
        until_relieved(agent, "MemoryPressure")
        assert_alone(agent, "hog", crowd)
    tell("memory", seen, crowd, "hog")
    assert metric(agent, 'kubelet_evictions{eviction_signal="memory.available"}') == "1"
    agent.assert_works(pod("later"))


@pytest.mark.skipif("memory" in (delegated_controllers() or ()), reason="a cgroup of all pods holds them to the limit")
@pytest.mark.slow
def test_pods_that_take_more_than_they_may_have_together_lose_the_greediest(new_agent: NewAgent) -> None:
    """Memory is reserved for others: the host has plenty, and no cgroup holds the pods to the rest."""
    others = psutil.virtual_memory().total - 350 * MIB
    agent = new_agent(
        systemReserved={"memory": str(others)},
        evictionHard={"memory.available": "50Mi"},
        evictionPressureTransitionPeriod="5s",
    )
    agent.start()
    crowd = Crowd(agent)
    agent.run(pod("modest", hog(100 * MIB, 100 * MIB)))
    with memory_told(agent):
        agent.write(pod("hog", hog(400 * MIB, 100 * MIB)))
        seen = follow(agent, {"short": lambda: bool(agent.eye.running("hog")), **of_eviction(agent, "hog")})
        assert available(Signal.MEMORY_AVAILABLE) > 600 * MIB, "the host has enough"
        assert_told(agent, "hog", "memory")
        until_relieved(agent, "MemoryPressure")
        assert_alone(agent, "hog", crowd)
    tell("memory of all pods", seen, crowd, "hog")
    assert metric(agent, 'kubelet_evictions{eviction_signal="allocatableMemory.available"}') == "1"
    assert agent.eye.running("modest")


@pytest.mark.slow
def test_a_fork_bomb_goes(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    crowd = Crowd(agent)
    threshold = available(Signal.PID_AVAILABLE) - 800
    agent.configure({"evictionHard": {"pid.available": str(threshold)}})
    agent.restart()
    agent.write(pod("bomb", container(script=f"for i in $(seq 1600); do sleep 3600 & done; {STAY}")))
    steps = {
        "short": lambda: available(Signal.PID_AVAILABLE) < threshold,
        **of_condition(agent, "PIDPressure"),
        **of_eviction(agent, "bomb"),
    }
    seen = follow(agent, steps)
    assert_told(agent, "bomb", "pids")
    assert_alone(agent, "bomb", crowd)
    tell("pids", seen, crowd, "bomb")


@pytest.mark.parametrize(
    ("offender", "signal_name", "gap", "script", "resource"),
    [
        ("emptyDir", Signal.NODEFS_AVAILABLE, 64 * MIB, writes(128), "ephemeral-storage"),
        pytest.param(
            "inodes", Signal.NODEFS_INODES_FREE, 10_000, "seq 20000 | xargs touch", "inodes", marks=pytest.mark.slow
        ),
    ],
)
def test_a_pod_that_fills_the_disk_goes_and_nobody_is_let_in_meanwhile(
    new_agent: NewAgent, in_memory: Path, offender: str, signal_name: Signal, gap: int, script: str, resource: str
) -> None:
    threshold = available(signal_name, str(in_memory)) - gap
    agent = disk_agent(new_agent, in_memory, {signal_name.value: str(threshold)})
    crowd = Crowd(agent)
    agent.write(with_volume("filler", script))

    def has_pressure() -> bool:
        if there_is := has_condition(agent, "DiskPressure"):
            agent.write(pod("refused"))
        return there_is

    steps = {
        "short": lambda: available(signal_name, str(in_memory)) < threshold,
        "condition": has_pressure,
        **of_eviction(agent, "filler"),
    }
    seen = follow(agent, steps)
    agent.until(lambda: agent.pods().get("refused", {}).get("status", {}).get("phase") == "Failed", "it is refused")
    refused = agent.pods()["refused"]["status"]
    assert refused["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    assert_told(agent, "filler", resource)
    agent.until(lambda: available(signal_name, str(in_memory)) > threshold, "what it wrote is gone")
    until_relieved(agent, "DiskPressure")
    assert_alone(agent, "filler", crowd)
    tell(offender, seen, crowd, "filler")
    agent.assert_works(pod("later"))


@pytest.mark.slow
def test_a_pod_that_fills_the_disk_with_its_log_goes(new_agent: NewAgent, in_memory: Path) -> None:
    threshold = available(Signal.NODEFS_AVAILABLE, str(in_memory)) - 64 * MIB
    settings = {Signal.NODEFS_AVAILABLE.value: str(threshold)}
    agent = disk_agent(new_agent, in_memory, settings, containerLogMaxSize="1Gi")
    crowd = Crowd(agent)
    # In pieces as large as conmon takes them: each costs it three calls of the kernel.
    agent.write(pod("filler", container(script=f"dd if=/dev/zero bs=64k count={128 * 16} 2>/dev/null; {STAY}")))
    seen = follow(agent, disk_steps(agent, str(in_memory), threshold))
    assert_told(agent, "filler", "ephemeral-storage")
    assert_alone(agent, "filler", crowd)
    tell("log", seen, crowd, "filler")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("dd if=/dev/zero of=/file bs=1M count=256", id="layer"),
        pytest.param("exec 3>/file; rm /file; dd if=/dev/zero bs=1M count=256 >&3", id="removed"),
    ],
)
def test_a_pod_that_fills_the_disk_of_the_layers_goes(
    store_in_memory: Path, new_agent: NewAgent, in_memory: Path, script: str
) -> None:
    agent, threshold = imagefs_agent(new_agent, store_in_memory, in_memory)
    crowd = Crowd(agent)
    agent.write(pod("filler", container(script=f"{script} 2>/dev/null; {STAY}")))
    seen = follow(agent, disk_steps(agent, str(store_in_memory), threshold))
    assert_told(agent, "filler", "ephemeral-storage")
    assert "Container main was using" in agent.pods()["filler"]["status"]["message"]
    assert_alone(agent, "filler", crowd)
    tell("layer", seen, crowd, "filler")


def disk_steps(agent: Agent, directory: str, threshold: int) -> Mapping[str, Step]:
    return {
        "short": lambda: available(Signal.NODEFS_AVAILABLE, directory) < threshold,
        **of_condition(agent, "DiskPressure"),
        **of_eviction(agent, "filler"),
    }


@pytest.mark.slow
def test_unused_images_that_fill_their_disk_go_and_no_pod_does(
    store_in_memory: Path, new_agent: NewAgent, in_memory: Path
) -> None:
    import_image(UNUSED, 256 * MIB)
    agent, threshold = imagefs_agent(new_agent, store_in_memory, in_memory, **COLLECTS_ALL)
    crowd = Crowd(agent)
    with (store_in_memory / "of somebody else").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 * MIB)
    steps = {
        "short": lambda: available(Signal.NODEFS_AVAILABLE, str(store_in_memory)) < threshold,
        **of_condition(agent, "DiskPressure"),
        "image gone": lambda: not image_exists(UNUSED),
    }
    seen = follow(agent, steps)
    assert "Attempting to reclaim ephemeral-storage" in agent.messages("e2e", "EvictionThresholdMet")
    until_relieved(agent, "DiskPressure")
    crowd.assert_undisturbed()
    assert evicted(agent) == []
    tell("images", seen, crowd, "the unused image, no pod")


def test_off_by_the_configuration(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("a"))

    def conditions() -> dict[str, Any]:
        return {kind: node_condition(agent, kind).get("status") for kind in PRESSURES}

    agent.until(lambda: None not in conditions().values(), "the node's status has conditions")
    assert conditions() == dict.fromkeys(PRESSURES, "False")
