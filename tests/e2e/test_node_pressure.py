"""The node runs short of something because of one pod: that pod goes, the others notice nothing.

Thresholds are relative to what this machine has now, with room for whatever else runs on it. Disks: the state directory
lies in memory, where hardly anybody else writes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ipc.eviction.signals import Signal
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.pressure import (
    EVICTED_S,
    MIB,
    Crowd,
    assert_told,
    assert_told_of_disk,
    available,
    disk_agent,
    imagefs_agent,
    node_condition,
    until_evicted,
)
from tests.podman_service import image_exists

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

UNUSED: Final = "localhost/rootlet-test-unused:latest"


def hog(share: int) -> Json:
    """Holds so many bytes of memory that belong to nobody else: buffers of writers that nobody reads from."""
    parts = share // (256 * MIB) + 1
    holder = "dd if=/dev/zero bs=256M count=1 2>/dev/null | sleep 3600"
    return container(script=f"for i in $(seq {parts}); do {holder} & done; {STAY}")


def test_a_pod_that_takes_the_memory_goes(new_agent: NewAgent) -> None:
    agent = new_agent(evictionPressureTransitionPeriod="5s")
    agent.start()
    crowd = Crowd(agent)
    # Measured beside the crowd and its agent, which take more than an eighth of a small machine.
    free = available(Signal.MEMORY_AVAILABLE)
    agent.configure({"evictionHard": {"memory.available": str(free * 7 // 8)}})
    agent.restart()
    agent.write(pod("hog", hog(free // 4)))
    status = until_evicted(agent, "hog")
    assert "Container main was using" in status["message"]
    assert_told(agent, "hog", status, "memory", "MemoryPressure")
    crowd.assert_undisturbed()
    agent.until(lambda: node_condition(agent, "MemoryPressure")["status"] == "False", "it has enough again", 60)
    agent.assert_works(pod("later"))
    metrics = agent.cli("get", "--raw", "/metrics")
    assert metrics.code != 0 or 'eviction_signal="memory.available"' in metrics.out


@pytest.mark.slow
def test_a_fork_bomb_goes(new_agent: NewAgent) -> None:
    free = available(Signal.PID_AVAILABLE)
    agent = new_agent(evictionHard={"pid.available": str(free - 800)})
    agent.start()
    crowd = Crowd(agent)
    agent.write(pod("bomb", container(script=f"for i in $(seq 1600); do sleep 3600 & done; {STAY}")))
    status = until_evicted(agent, "bomb")
    assert_told(agent, "bomb", status, "pids", "PIDPressure")
    crowd.assert_undisturbed()


def with_volume(script: str) -> Json:
    main = container(script=f"cd /v; {script}; {STAY}", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return pod("filler", main, volumes=[{"name": "v", "emptyDir": {}}])


@pytest.mark.parametrize(
    ("signal_name", "gap", "script", "resource"),
    [
        (Signal.NODEFS_AVAILABLE, 64 * MIB, "dd if=/dev/zero of=file bs=1M count=128 2>/dev/null", "ephemeral-storage"),
        pytest.param(Signal.NODEFS_INODES_FREE, 10_000, "seq 20000 | xargs touch", "inodes", marks=pytest.mark.slow),
    ],
)
def test_a_pod_that_fills_the_disk_goes_and_nobody_is_let_in_meanwhile(
    new_agent: NewAgent, in_memory: Path, signal_name: Signal, gap: int, script: str, resource: str
) -> None:
    free = available(signal_name, str(in_memory))
    agent = disk_agent(new_agent, in_memory, {signal_name.value: str(free - gap)})
    crowd = Crowd(agent)
    agent.write(with_volume(script))
    agent.until(lambda: node_condition(agent, "DiskPressure").get("status") == "True", "there is pressure", EVICTED_S)
    agent.write(pod("refused"))
    agent.until(lambda: agent.pods().get("refused", {}).get("status", {}).get("phase") == "Failed", "it is refused")
    refused = agent.pods()["refused"]["status"]
    assert refused["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    status = until_evicted(agent, "filler")
    assert_told_of_disk(agent, status, resource)
    crowd.assert_undisturbed()
    agent.until(lambda: available(signal_name, str(in_memory)) > free - gap, "what it wrote is gone")
    agent.until(lambda: node_condition(agent, "DiskPressure")["status"] == "False", "there is room again", 60)
    agent.assert_works(pod("later"))


@pytest.mark.slow
def test_a_pod_that_fills_the_disk_with_its_log_goes(new_agent: NewAgent, in_memory: Path) -> None:
    free = available(Signal.NODEFS_AVAILABLE, str(in_memory))
    threshold = {Signal.NODEFS_AVAILABLE.value: str(free - 64 * MIB)}
    agent = disk_agent(new_agent, in_memory, threshold, containerLogMaxSize="1Gi")
    crowd = Crowd(agent)
    line = "x" * 1000
    agent.write(pod("filler", container(script=f"yes {line} | head -c {128 * MIB}; {STAY}")))
    status = until_evicted(agent, "filler")
    assert_told_of_disk(agent, status, "ephemeral-storage")
    crowd.assert_undisturbed()


@pytest.mark.slow
def test_a_pod_that_fills_the_disk_of_the_layers_goes(
    store_in_memory: Path, new_agent: NewAgent, in_memory: Path
) -> None:
    agent = imagefs_agent(new_agent, store_in_memory, in_memory)
    crowd = Crowd(agent)
    agent.write(pod("filler", container(script=f"dd if=/dev/zero of=/file bs=1M count=256 2>/dev/null; {STAY}")))
    status = until_evicted(agent, "filler")
    assert_told(agent, "filler", status, "ephemeral-storage", "DiskPressure")
    assert "Container main was using" in status["message"]
    crowd.assert_undisturbed()


@pytest.mark.slow
def test_unused_images_that_fill_their_disk_go_and_no_pod_does(
    store_in_memory: Path, new_agent: NewAgent, in_memory: Path
) -> None:
    import_image(UNUSED, 256 * MIB)
    agent = imagefs_agent(new_agent, store_in_memory, in_memory, imageGCScope="AllImages", imageMinimumGCAge="1s")
    crowd = Crowd(agent)
    (store_in_memory / "of somebody else").write_bytes(bytes(256 * MIB))
    agent.until(lambda: not image_exists(UNUSED), "the unused image is gone", EVICTED_S)
    assert "Attempting to reclaim ephemeral-storage" in agent.messages("e2e", "EvictionThresholdMet")
    agent.until(lambda: node_condition(agent, "DiskPressure")["status"] == "False", "there is room again", 60)
    crowd.assert_undisturbed()
    assert not [event for name in agent.pods() for event in agent.events(name) if event["reason"] == "Evicted"]


def import_image(name: str, size: int) -> None:
    """An image with one file. It lies nowhere else meanwhile: file systems in memory are small."""
    layer = tarfile.TarInfo("file")
    layer.size = size
    command = ["podman", "import", "--quiet", "-", name]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process,
        Path("/dev/zero").open("rb") as zeros,
    ):
        assert process.stdin is not None
        with process.stdin, tarfile.open(fileobj=process.stdin, mode="w|") as tar:
            tar.addfile(layer, zeros)
    assert process.returncode == 0


MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "there is pressure": lambda agent: node_condition(agent, "DiskPressure").get("status") == "True",
    "it is told": lambda agent: "Evicted" in agent.reasons("filler"),
    "it is written down": lambda agent: bool(list((agent.state / "pods").glob("*/evicted"))),
    "nothing of it runs": lambda agent: not agent.eye.running("filler"),
    "nothing of it is left": lambda agent: not agent.eye.containers("filler"),
}
"""Steps of an eviction, as they show from outside."""


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_agent_that_is_killed_while_it_evicts_comes_to_the_same_end(
    new_agent: NewAgent, in_memory: Path, moment: str
) -> None:
    free = available(Signal.NODEFS_AVAILABLE, str(in_memory))
    agent = disk_agent(new_agent, in_memory, {"nodefs.available": str(free - 64 * MIB)})
    crowd = Crowd(agent)
    agent.write(with_volume("dd if=/dev/zero of=file bs=1M count=128 2>/dev/null"))
    agent.until(lambda: bool(agent.eye.running("filler")), "it runs")
    agent.until(lambda: MOMENTS[moment](agent), moment, EVICTED_S, 0.02)
    os.kill(agent.process.pid, signal.SIGKILL)
    agent.wait_end()
    agent.start()
    until_evicted(agent, "filler")
    agent.until(lambda: not agent.eye.containers("filler"), "its containers are gone")
    crowd.assert_undisturbed()
    marks = list((agent.state / "pods").glob("*/evicted"))
    assert len(marks) == 1
    agent.restart()
    until_evicted(agent, "filler")
    assert not agent.eye.containers("filler")


def test_off_by_the_configuration(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("a"))

    def conditions() -> dict[str, Any]:
        return {kind: node_condition(agent, kind).get("status") for kind in PRESSURES}

    agent.until(lambda: None not in conditions().values(), "the node's status has conditions")
    assert conditions() == dict.fromkeys(PRESSURES, "False")


PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
