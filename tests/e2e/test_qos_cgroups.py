"""Cgroups of pods and of their QoS classes: there where systemd manages cgroups and has delegated controllers to this
user; elsewhere Podman puts pods where it likes. Each test says what is true on its host, whichever that is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.admission.cgroups import delegated_controllers, service_manager
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CONTROLLERS: Final = delegated_controllers() or frozenset()
LIMIT: Final = 60
RESERVED_MIB: Final = 100
SLOW_S: Final = 120.0
"""A pod that is made anew on an emulated machine."""


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    agent = new_shared_agent(podPidsLimit=LIMIT, systemReserved={"memory": f"{RESERVED_MIB}Mi"})
    agent.start()
    return agent


@pytest.fixture(scope="module")
def has_classes() -> bool:
    """Whether there is anything to give a pod a cgroup of its class."""
    manager = podman("info", "--format", "{{.Host.CgroupManager}}").strip()
    return {"cpu", "memory"} <= CONTROLLERS and manager == "systemd"


def asking(name: str, limits: dict[str, str], requests: dict[str, str]) -> Json:
    return pod(name, container(resources={"limits": limits, "requests": requests}))


def cgroup_of(agent: Agent, name: str) -> Path:
    """Of the first process of its container."""
    text = Path(f"/proc/{agent.eye.container(name, 'main').pid}/cgroup").read_text()
    return Path("/sys/fs/cgroup") / text.rpartition("::")[2].strip().lstrip("/")


def slices(agent: Agent, name: str) -> list[Path]:
    """Cgroups above it that are ours, the outermost first; the last one is the pod's."""
    above = reversed(cgroup_of(agent, name).parents)
    return [parent for parent in above if parent.name.startswith("rootlet-") and parent.suffix == ".slice"]


def read(directory: Path, file: str) -> str:
    """Empty where there is no such file."""
    path = directory / file
    return path.read_text().strip() if path.exists() else ""


@pytest.fixture
def three(agent: Agent) -> Iterator[tuple[str, str, str]]:
    whole = {"cpu": "100m", "memory": "64Mi"}
    names = ("qos-guaranteed", "qos-burstable", "qos-best-effort")
    agent.run(asking(names[0], whole, whole), asking(names[1], {}, {"cpu": "500m"}), asking(names[2], {}, {}))
    yield names
    agent.remove(*names)


def test_pods_share_the_cpu_by_their_class(agent: Agent, three: tuple[str, str, str], has_classes: bool) -> None:
    found = [slices(agent, name) for name in three]
    if not has_classes:
        assert found == [[], [], []]
        return
    root = service_manager() / "rootlet.slice" / f"rootlet-{agent.instance.replace('-', '_')}.slice"
    classes = [str(each[0].relative_to(root)) for each in ([s for s in above if s != root] for above in found)]
    assert "libpod_pod" in classes[0], "guaranteed pods are directly in the slice of all"
    assert [name.rpartition("-")[2] for name in classes[1:]] == ["burstable.slice", "besteffort.slice"]
    burstable, best_effort = root / classes[1], root / classes[2]
    agent.until(lambda: read(best_effort, "cpu.weight") == "1", "best effort weighs least")
    agent.until(lambda: read(burstable, "cpu.weight") == "20", "burstable pods weigh what they ask for together")
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    assert read(root, "memory.max") == str((total_kib - RESERVED_MIB * 1024) * 1024)
    assert read(root, "pids.max") == read(Path("/proc/sys/kernel"), "pid_max")


def test_a_pod_has_no_more_processes_than_is_set(agent: Agent, three: tuple[str, str, str], has_classes: bool) -> None:
    limits = [read(each, "pids.max") for each in (cgroup_of(agent, three[2]), *slices(agent, three[2])[-1:])]
    if has_classes:
        assert limits == [str(LIMIT), str(LIMIT)]
    elif "pids" in CONTROLLERS:
        assert str(LIMIT) in limits


def test_a_pod_whose_cgroup_is_taken_away_is_made_anew(agent: Agent, has_classes: bool) -> None:
    if not has_classes:
        pytest.skip("no pod has a cgroup here")
    agent.run(pod("qos-stays"), pod("qos-once", restartPolicy="Never"))
    before = {name: slices(agent, name)[-1] for name in ("qos-stays", "qos-once")}
    for directory in before.values():
        subprocess.run(["systemctl", "--user", "stop", directory.name], check=True, timeout=SLOW_S)
    agent.until(lambda: agent.pods()["qos-once"]["status"]["phase"] == "Failed", "it ran once", SLOW_S)

    def is_anew() -> bool:
        status = agent.pods()["qos-stays"]["status"]["containerStatuses"][0]
        is_back = bool(status["restartCount"] and status["ready"])
        return is_back and slices(agent, "qos-stays")[-1] != before["qos-stays"]

    agent.until(is_anew, "it runs in a cgroup of its own again", SLOW_S)
    agent.remove("qos-stays", "qos-once")
