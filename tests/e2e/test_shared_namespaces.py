"""Namespaces that a pod shares: with the host, and among its containers."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

import psutil
import pytest

from tests.e2e.agent import Agent, container_status, restart_count
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LEAVES_ONE: Final = "sleep 987654 & echo started; sleep 1; exit 3"
"""A container that ends before a process which it has started."""


def namespace(agent: Agent, name: str, kind: str, container_name: str = "main") -> str:
    """Namespace of a container's first process."""
    return os.readlink(f"/proc/{agent.eye.container(name, container_name).pid}/ns/{kind}")


def test_one_process_namespace_for_the_pod(agent: Agent) -> None:
    probe = {"exec": {"command": ["sh", "-c", "ps | grep -q [o]ther-one"]}, "periodSeconds": 1}
    parts = (container(readinessProbe=probe), container("other", "exec sh -c 'echo other-one; sleep 876543; true'"))
    agent.run(pod("shared", *parts, shareProcessNamespace=True))
    assert namespace(agent, "shared", "pid") == namespace(agent, "shared", "pid", "other")
    assert namespace(agent, "shared", "pid") == namespace(agent, "shared", "pid", INFRA)
    assert "catatonit" in agent.inside("shared", "cat /proc/1/comm"), "pid 1 is the sandbox's"
    assert "sleep 876543" in agent.inside("shared", "ps")
    debug = container("debug", f"ps; {STAY}")
    before = agent.eye.pod_table("shared")
    agent.write(
        pod(
            "shared",
            *parts,
            shareProcessNamespace=True,
            ephemeralContainers=[{**debug, "targetContainerName": "other"}],
        )
    )
    agent.until(lambda: "sleep 876543" in agent.output("shared", "debug"), "debug sees them all")
    assert before.items() <= agent.eye.pod_table("shared").items()


def test_a_container_ends_with_all_that_it_has_started(agent: Agent) -> None:
    """Also where its first process is not the first one of its PID namespace, whose end ends all others."""
    leaving, staying = container(script=LEAVES_ONE), container("stays")
    agent.write(
        pod("shared-leaves", leaving, staying, restartPolicy="Never", shareProcessNamespace=True),
        pod("host-leaves", leaving, staying, restartPolicy="Never", hostPID=True),
        pod("last-leaves", leaving, restartPolicy="Never", hostPID=True),
    )
    for name in ("shared-leaves", "host-leaves", "last-leaves"):
        agent.until(partial(_has_ended, agent, name), f"{name} has ended")
        assert container_status(agent.pods()[name])["state"]["terminated"]["exitCode"] == 3
    agent.until(lambda: not _sleepers(), "what they have started has ended")
    assert {("shared-leaves", "stays"), ("host-leaves", "stays")} <= agent.eye.running().keys()
    # Podman's own removal would leave what the others have started in the host's namespace.
    names = ["shared-leaves", "host-leaves", "last-leaves"]
    agent.remove(*names)
    agent.until_gone(names)


def _has_ended(agent: Agent, name: str) -> bool:
    return name in agent.pods() and "terminated" in container_status(agent.pods()[name]).get("state", {})


def _sleepers() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "987654"]]


def test_a_container_restarts_beside_others_in_one_namespace(agent: Agent) -> None:
    agent.run(pod("again", container(script=f"sleep 987654 & {STAY}"), container("other"), shareProcessNamespace=True))
    before = agent.eye.pod_table("again")
    os.kill(agent.eye.container("again", "main").pid, 9)
    agent.until(lambda: restart_count(agent.pods()["again"]) == 1, "it was started again")
    agent.until_ready(["again"])
    after = agent.eye.pod_table("again")
    assert {key for key, lifecycle in after.items() if before[key] != lifecycle} == {("again", "main")}
    agent.until(lambda: len(_sleepers()) == 1, "of its first life nothing is left")
    agent.remove("again")
    agent.until_gone(["again"])


def test_the_sandboxes_end_is_everybodys(agent: Agent) -> None:
    agent.run(pod("infra-dies", container(), container("other"), shareProcessNamespace=True))
    before = agent.eye.running("infra-dies")
    os.kill(before["infra-dies", INFRA].pid, 9)
    agent.until(
        lambda: (
            {c.id for c in agent.eye.running("infra-dies").values()}.isdisjoint(c.id for c in before.values())
            and len(agent.eye.running("infra-dies")) == 3
        ),
        "all of it was made anew",
    )
    agent.until_ready(["infra-dies"])


def test_the_hosts_processes(agent: Agent) -> None:
    agent.run(pod("host-pid", hostPID=True))
    assert namespace(agent, "host-pid", "pid") == os.readlink("/proc/self/ns/pid")
    assert agent.inside("host-pid", f"cat /proc/{os.getpid()}/comm") == psutil.Process().name()
    main = agent.eye.container("host-pid", "main").lifecycle
    agent.write(pod("host-pid"))

    def is_another() -> bool:
        found = agent.eye.running("host-pid").get(("host-pid", "main"))
        return found is not None and found.lifecycle != main

    agent.until(is_another, "another sandbox without them")
    assert namespace(agent, "host-pid", "pid") != os.readlink("/proc/self/ns/pid")


def test_the_hosts_ipc(agent: Agent) -> None:
    agent.run(pod("host-ipc", container(), hostIPC=True), pod("own-ipc", container(), container("other")))
    ours = os.readlink("/proc/self/ns/ipc")
    assert namespace(agent, "host-ipc", "ipc") == ours
    assert namespace(agent, "own-ipc", "ipc") == namespace(agent, "own-ipc", "ipc", "other") != ours
