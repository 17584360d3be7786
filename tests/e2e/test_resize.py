"""Resources of a pod that runs: changed in place where the cgroup controllers are this user's, by other containers
elsewhere. Each test says what is true on its host, whichever that is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.admission.cgroups import delegated_controllers
from supervisor.state.resources_checkpoint import ALLOCATED_FILE
from tests.e2e.agent import Agent, Json, container_status, restart_count
from tests.e2e.expected_histories import GATE, let_through
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CONTROLLERS: Final = delegated_controllers() or frozenset()
IN_PLACE: Final = {"cpu", "memory"} <= CONTROLLERS
MIB: Final = 1 << 20
HOLDS_MIB: Final = "dd if=/dev/zero of=/dev/shm/held bs=1M count=40 2>/dev/null; "
"""Memory that the kernel cannot take back."""
MEMORY_VOLUME: Final = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}


def resources(cpu: str, memory: str, more: Json | None = None) -> Json:
    """Burstable, whatever the amounts."""
    return {"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": "10m", "memory": "8Mi"}, **(more or {})}


def sized(name: str, cpu: str, memory: str, **fields: Any) -> Json:
    return pod(name, container(resources=resources(cpu, memory), **fields))


def limits_inside(agent: Agent, name: str, container: str = "main") -> list[str]:
    script = "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max 2>/dev/null"
    return agent.inside(name, script, container).split()


def expected_limits(cpu_ms: int, memory_mib: int) -> list[str]:
    return [str(cpu_ms * 100), "100000", str(memory_mib * MIB)]


def condition(agent: Agent, name: str, type: str) -> Json | None:
    return next((each for each in agent.pods()[name]["status"]["conditions"] if each["type"] == type), None)


def allocated_and_desired(agent: Agent, name: str) -> tuple[str, str]:
    """The cpu that the pod's container has, and that its manifest asks for, as the kubelet's server tells them."""
    listed = {each["metadata"]["name"]: each for each in agent.get("/allocatedPods")["items"]}
    allocated = agent.get(f"/allocatedPods/default/{name}")
    assert listed[name] == allocated == agent.get(f"/allocatedPods/{allocated['metadata']['uid']}")
    assert allocated["status"] == {}
    had, wanted = (each["spec"]["containers"][0]["resources"]["requests"] for each in (allocated, agent.pods()[name]))
    return had["cpu"], wanted["cpu"]


def until_resized(agent: Agent, name: str, cpu: str, container: str = "main") -> None:
    def has_it() -> bool:
        status = container_status(agent.pods()[name], container)
        has_cpu = status.get("resources", {}).get("limits", {}).get("cpu") == cpu
        return has_cpu and "running" in status["state"] and condition(agent, name, "PodResizeInProgress") is None

    agent.until(has_it, f"{name} has its new resources")
    assert "ResizeCompleted" in agent.reasons(name)


def test_more_and_less_without_another_container(agent: Agent) -> None:
    agent.run(sized("grows", "200m", "64Mi"))
    before = container_status(agent.pods()["grows"])
    assert before["resources"] == resources("200m", "64Mi")
    assert before["allocatedResources"] == {"cpu": "10m", "memory": "8Mi"}
    agent.write(sized("grows", "400m", "96Mi"))
    until_resized(agent, "grows", "400m")
    status = container_status(agent.pods()["grows"])
    assert status["restartCount"] == (0 if IN_PLACE else 1)
    said = agent.messages("grows", "ResizeByRestart")
    if IN_PLACE:
        assert status["containerID"] == before["containerID"]
        assert limits_inside(agent, "grows") == expected_limits(400, 96)
        assert said == []
        agent.write(sized("grows", "100m", "32Mi"))
        until_resized(agent, "grows", "100m")
        assert limits_inside(agent, "grows") == expected_limits(100, 32)
        assert restart_count(agent.pods()["grows"]) == 0
    else:
        assert len(said) == 1
        assert said[0].endswith("main is restarted, against its resizePolicy")
    assert condition(agent, "grows", "PodResizeInProgress") is None
    agent.remove("grows")


def test_a_container_that_asks_for_it_is_restarted(agent: Agent) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    agent.run(sized("asks", "200m", "64Mi", resizePolicy=policy))
    agent.write(sized("asks", "200m", "96Mi", resizePolicy=policy))
    agent.until(lambda: restart_count(agent.pods()["asks"]) == 1, "it is restarted")
    agent.until(lambda: "ResizeCompleted" in agent.reasons("asks"), "the resize is done")
    assert agent.messages("asks", "ResizeByRestart") == []
    assert "Container main resize requires restart" in agent.messages("asks", "Killing")
    if IN_PLACE:
        assert limits_inside(agent, "asks") == expected_limits(200, 96)
        agent.write(sized("asks", "300m", "96Mi", resizePolicy=policy))
        until_resized(agent, "asks", "300m")
        assert restart_count(agent.pods()["asks"]) == 1, "of cpu it does not ask for it"
        assert limits_inside(agent, "asks") == expected_limits(300, 96)
    agent.remove("asks")


def test_memory_does_not_shrink_below_what_is_used(agent: Agent) -> None:
    if not IN_PLACE:
        pytest.skip("no memory controller is delegated to this user: containers are restarted")

    def holding(memory: str) -> Json:
        mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
        main = container(script=HOLDS_MIB + STAY, volumeMounts=mounts, resources=resources("200m", memory))
        return pod("holds", main, volumes=[MEMORY_VOLUME])

    agent.run(holding("128Mi"))
    held = "test $(stat -c %s /dev/shm/held 2>/dev/null || echo 0) -ge 41943040 && echo all"
    agent.until(lambda: agent.inside("holds", held).strip() == "all", "it holds its memory")
    agent.write(holding("16Mi"))
    agent.until(lambda: "ResizeError" in agent.reasons("holds"), "it cannot be done")
    failed = condition(agent, "holds", "PodResizeInProgress")
    assert failed is not None
    assert failed["reason"] == "Error"
    assert failed["message"].startswith("cannot decrease memory limits: attempting to set pod memory limit (16777216)")
    assert 'attempting to set container "main" memory limit (16777216) below current usage' in failed["message"]
    assert limits_inside(agent, "holds") == expected_limits(200, 128)
    assert container_status(agent.pods()["holds"])["resources"]["limits"]["memory"] == "128Mi"
    agent.write(holding("96Mi"))
    agent.until(lambda: condition(agent, "holds", "PodResizeInProgress") is None, "what fits is done", 60.0)
    assert limits_inside(agent, "holds") == expected_limits(200, 96)
    assert restart_count(agent.pods()["holds"]) == 0
    agent.remove("holds")


def test_what_the_node_has_not_is_refused_and_the_pod_goes_on_over_an_agents_death(agent: Agent) -> None:
    def asking(cpu: str) -> Json:
        return pod("large", container(resources={"requests": {"cpu": cpu}}))

    agent.run(asking("10m"))
    before = container_status(agent.pods()["large"])["containerID"]
    agent.write(asking("4000"))
    agent.until(lambda: condition(agent, "large", "PodResizePending") is not None, "it is told")
    told = condition(agent, "large", "PodResizePending")
    assert told is not None
    assert told["reason"] == "Infeasible"
    assert told["message"].startswith("Node didn't have enough capacity: cpu, requested: 4000000, capacity: ")
    written = agent.state / ALLOCATED_FILE
    agent.until(lambda: "PodResizePending" in written.read_text(), "it is written down")
    agent.process.kill()
    agent.wait_end()
    agent.start()
    agent.until(lambda: condition(agent, "large", "PodResizePending") == told, "it is told by the next one, too")
    status = container_status(agent.pods()["large"])
    assert (status["containerID"], status["allocatedResources"]) == (before, {"cpu": "10m"})
    assert agent.pods()["large"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "4k"}
    assert len(agent.messages("large", "ResizeInfeasible")) <= 1, "the next one does not say it again"
    agent.write(asking("10m"))
    agent.until(lambda: condition(agent, "large", "PodResizePending") is None, "it is asked for no more")
    assert container_status(agent.pods()["large"])["containerID"] == before
    agent.remove("large")


def test_a_resize_waits_until_there_is_room(agent: Agent) -> None:
    cpus = len(os.sched_getaffinity(0)) * 1000

    def asking(name: str, milli_cpu: int) -> Json:
        return pod(name, container(resources={"requests": {"cpu": f"{milli_cpu}m"}}))

    agent.run(asking("first", cpus - 300), asking("second", 100))
    agent.write(asking("second", 600))
    agent.until(lambda: "ResizeDeferred" in agent.reasons("second"), "it waits")
    waits = condition(agent, "second", "PodResizePending")
    assert waits is not None
    assert waits["reason"] == "Deferred"
    assert allocated_and_desired(agent, "second") == ("100m", "600m")
    agent.remove("first")
    agent.until(lambda: "ResizeStarted" in agent.reasons("second"), "it begins", 60.0)
    agent.until(lambda: "ResizeCompleted" in agent.reasons("second"), "it is done")
    assert condition(agent, "second", "PodResizePending") is None
    assert container_status(agent.pods()["second"])["allocatedResources"] == {"cpu": "600m"}
    assert allocated_and_desired(agent, "second") == ("600m", "600m")
    agent.remove("second")


def test_an_init_container_while_it_runs(agent: Agent) -> None:
    def initialized(cpu: str, memory: str) -> Json:
        waits = container("first", GATE, resources=resources(cpu, memory))
        return pod("initialized", container(), initContainers=[waits])

    def first() -> Json:
        return container_status(agent.pods().get("initialized", {"status": {}}), "first")

    agent.write(initialized("200m", "64Mi"))
    agent.until(lambda: "running" in first().get("state", {}), "the init container runs")
    before = first()
    agent.write(initialized("400m", "96Mi"))
    until_resized(agent, "initialized", "400m", "first")
    assert first()["restartCount"] == (0 if IN_PLACE else 1)
    if IN_PLACE:
        assert first()["containerID"] == before["containerID"]
        assert limits_inside(agent, "initialized", "first") == expected_limits(400, 96)
    assert not container_status(agent.pods()["initialized"])["started"]
    let_through(agent, "initialized", "first")
    agent.until_ready(["initialized"])
    assert first()["state"]["terminated"]["exitCode"] == 0
    agent.remove("initialized")


def test_a_sidecar_beside_a_container_that_goes_on(agent: Agent) -> None:
    def beside(cpu: str, memory: str) -> Json:
        sidecar = container("sidecar", restartPolicy="Always", resources=resources(cpu, memory))
        return pod("beside", container(resources=resources("200m", "64Mi")), initContainers=[sidecar])

    def of(name: str) -> Json:
        return container_status(agent.pods()["beside"], name)

    agent.run(beside("200m", "64Mi"))
    before = {name: of(name)["containerID"] for name in ("main", "sidecar")}
    agent.write(beside("300m", "96Mi"))
    until_resized(agent, "beside", "300m", "sidecar")
    assert of("main")["containerID"] == before["main"]
    assert of("main")["restartCount"] == 0
    assert of("sidecar")["restartCount"] == (0 if IN_PLACE else 1)
    if IN_PLACE:
        assert of("sidecar")["containerID"] == before["sidecar"]
        assert limits_inside(agent, "beside", "sidecar") == expected_limits(300, 96)
        assert limits_inside(agent, "beside") == expected_limits(200, 64)
    agent.remove("beside")


@pytest.mark.slow
def test_of_two_that_wait_the_one_of_higher_priority_comes_first(agent: Agent) -> None:
    """Room comes for one of them: not for the one that has waited longer."""
    cpus = len(os.sched_getaffinity(0)) * 1000

    def asking(name: str, milli_cpu: int, priority: int = 0) -> Json:
        return pod(name, container(resources={"requests": {"cpu": f"{milli_cpu}m"}}), priority=priority)

    def waits(name: str) -> bool:
        found = condition(agent, name, "PodResizePending")
        return found is not None and found["reason"] == "Deferred"

    agent.run(asking("holder", cpus - 400), asking("low", 100), asking("high", 100, 1000))
    agent.write(asking("low", cpus - 500))
    agent.until(lambda: waits("low"), "the one of low priority waits")
    agent.write(asking("high", cpus - 500, 1000))
    agent.until(lambda: waits("high"), "the other one waits, too")
    agent.remove("holder")
    agent.until(lambda: "ResizeCompleted" in agent.reasons("high"), "the other one is done", 60.0)
    assert container_status(agent.pods()["high"])["allocatedResources"] == {"cpu": f"{cpus - 500}m"}
    assert waits("low")
    agent.remove("high")
    agent.until(lambda: "ResizeCompleted" in agent.reasons("low"), "the first one is done when there is room", 60.0)
    agent.remove("low")


MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "it is told": lambda agent: "ResizeStarted" in agent.reasons("edited"),
    "it is allocated": lambda agent: "80Mi" in (agent.state / ALLOCATED_FILE).read_text(),
    "memory is another": lambda agent: limits_of(agent, "memory.max") in ("", str(80 * MIB)),
    "all is another": lambda agent: limits_of(agent, "cpu.max") in ("", "30000 100000"),
    "it has ended": lambda agent: "ResizeCompleted" in agent.reasons("edited"),
}
"""Steps of a resize, as they show from outside."""


def limits_of(agent: Agent, file: str) -> str:
    """As the kernel has it; empty where the container has no such limit."""
    try:
        own = Path(f"/proc/{agent.eye.container('edited', 'main').pid}/cgroup").read_text().rpartition("::")[2].strip()
        return Path(f"/sys/fs/cgroup{own}", file).read_text().strip()
    except (OSError, KeyError):
        return ""


VICTIMS: Final = ("master", "pods-0")


ALWAYS: Final = ("it is told", "master")


@pytest.mark.parametrize(
    ("moment", "victim"),
    [
        pytest.param(*each, marks=() if each == ALWAYS else pytest.mark.slow)
        for each in itertools.product(MOMENTS, VICTIMS)
    ],
)
def test_an_agent_that_dies_with_the_edit_loses_nothing(agent: Agent, moment: str, victim: str) -> None:
    """At whatever step it dies, or a worker does."""
    agent.run(sized("edited", "200m", "64Mi"))
    agent.write(sized("edited", "300m", "80Mi"))
    agent.kill_and_recover(victim, lambda: MOMENTS[moment](agent))

    def has_it() -> bool:
        limits = container_status(agent.pods()["edited"])["resources"]["limits"]
        return bool(limits == {"cpu": "300m", "memory": "80Mi"})

    restarts = 0 if IN_PLACE else 1
    agent.until(
        lambda: restart_count(agent.pods()["edited"]) == restarts, "it is restarted where the host cannot resize"
    )
    agent.until(has_it, "it has its resources")
    agent.until(lambda: condition(agent, "edited", "PodResizeInProgress") is None, "nothing is left to do")
    if IN_PLACE:
        assert limits_inside(agent, "edited") == expected_limits(300, 80)
    assert restart_count(agent.pods()["edited"]) == restarts
    agent.remove("edited")
    agent.until_gone(["edited"])


def cgroup_of_pod(agent: Agent, name: str) -> Path | None:
    path = Path(f"/proc/{agent.eye.container(name, 'main').pid}/cgroup").read_text().rpartition("::")[2].strip()
    found = [parent for parent in Path(path).parents if "libpod_pod_" in parent.name]
    return Path(f"/sys/fs/cgroup{found[0]}") if found else None


def test_the_pod_as_a_whole(agent: Agent) -> None:
    def whole(cpu: str, memory: str) -> Json:
        own = {"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": "50m", "memory": "16Mi"}}
        return pod("whole", container(), resources=own)

    agent.run(whole("200m", "64Mi"))
    before = container_status(agent.pods()["whole"])["containerID"]
    agent.write(whole("500m", "96Mi"))

    def has_it() -> bool:
        status = agent.pods()["whole"]["status"]
        given = status.get("resources", {}).get("limits")
        has_given = given == {"cpu": "500m", "memory": "96Mi"}
        return bool(has_given) and "ResizeCompleted" in agent.reasons("whole")

    agent.until(has_it, "it has its resources")
    agent.until_ready(["whole"])
    if IN_PLACE:
        assert container_status(agent.pods()["whole"])["containerID"] == before
        assert limits_inside(agent, "whole") == expected_limits(500, 96)
        cgroup = cgroup_of_pod(agent, "whole")
        if cgroup is not None:
            assert (cgroup / "cpu.max").read_text().split() == ["50000", "100000"]
            assert (cgroup / "memory.max").read_text().strip() == str(96 * MIB)
    else:
        assert container_status(agent.pods()["whole"])["containerID"] != before
    agent.remove("whole")
