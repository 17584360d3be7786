"""Whether CPU and memory limits hold: where the cgroup controllers are this user's they do, elsewhere it is said that
they do not, and nothing looks as if they did. Each test says what is true on its host, whichever that is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import psutil
import pytest

from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent, Json, container_status
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CONTROLLERS: Final = delegated_controllers() or frozenset()
MIB: Final = 1 << 20
HOG: Final = "a=0123456789abcdef; i=0; while [ $i -lt 22 ]; do i=$((i+1)); a=$a$a; done; echo ${#a}"
"""Asks for 64 MiB, at least twice."""
HOGGED: Final = 64 * MIB
SLOW_S: Final = 100.0
"""Two starts and two deaths, on an emulated machine."""
SPIN: Final = "while true; do :; done"
FILES: Final = ("cpu.max", "cpu.weight", "memory.max", "memory.swap.max", "memory.oom.group")


def with_resources(script: str, limits: dict[str, str], requests: dict[str, str] | None = None) -> Json:
    return container(script=script, resources={"limits": limits, "requests": requests or {}})


def in_cgroup(agent: Agent, name: str, *files: str) -> dict[str, str]:
    """Content of files in the cgroup of a container; the empty string where there is no such file."""
    script = "; ".join(f"echo {file}: $(cat /sys/fs/cgroup/{file} 2>/dev/null)" for file in files)
    said = [line.partition(":") for line in agent.inside(name, script).splitlines()]
    return {file: content.strip() for file, _, content in said}


def said_not_to_hold(agent: Agent, name: str) -> set[str]:
    told = " ".join(message.partition(": not enforced")[0] for message in agent.messages(name, "UnsupportedField"))
    return {controller for controller in ("cpu", "memory") if controller in told}


def test_a_container_has_what_its_limits_say(agent: Agent) -> None:
    """Memory without swap, and killed as a whole."""
    agent.run(pod("limited", with_resources(STAY, {"cpu": "150m", "memory": "64Mi"})))
    found = in_cgroup(agent, "limited", *FILES)
    if "cpu" in CONTROLLERS:
        assert found["cpu.max"] == "15000 100000"
    else:
        assert found["cpu.max"] in ("", "max 100000")
    if "memory" in CONTROLLERS:
        assert (found["memory.max"], found["memory.oom.group"]) == (str(64 * MIB), "1")
        assert found["memory.swap.max"] in ("", "0"), "a kernel may have no swap"
    else:
        assert found["memory.max"] in ("", "max")
    assert said_not_to_hold(agent, "limited") == {"cpu", "memory"} - CONTROLLERS
    agent.remove("limited")


@pytest.mark.skipif("cpu" not in CONTROLLERS, reason="no cpu controller: tests/hosts/controllers has one")
def test_quotas_of_cpu_have_their_period_and_can_be_switched_off(new_agent: NewAgent) -> None:
    agent = new_agent(cpuCFSQuotaPeriod="50ms")
    agent.start()
    agent.run(pod("half", with_resources(STAY, {"cpu": "500m"})))
    assert in_cgroup(agent, "half", "cpu.max") == {"cpu.max": "25000 50000"}
    agent.configure({"cpuCFSQuota": False})
    agent.restart()
    agent.run(pod("free", with_resources(STAY, {"cpu": "500m"})))
    assert in_cgroup(agent, "free", "cpu.max")["cpu.max"].startswith("max")


def test_requests_of_cpu_are_weights(agent: Agent) -> None:
    """How Podman's OCI runtime translates shares has changed; that more is more has not."""
    small, large = ({"cpu": "100m"}, {"cpu": "900m"})
    agent.run(*(pod(name, with_resources(STAY, {}, asked)) for name, asked in (("small", small), ("large", large))))
    weights = [in_cgroup(agent, name, "cpu.weight")["cpu.weight"] for name in ("small", "large")]
    if "cpu" in CONTROLLERS:
        assert 5 * int(weights[0]) < int(weights[1])
    else:
        assert len(set(weights)) == 1
    assert said_not_to_hold(agent, "small") == {"cpu"} - CONTROLLERS
    agent.remove("small", "large")


def test_a_container_without_limits_has_the_pods(agent: Agent) -> None:
    agent.run(pod("whole", resources={"limits": {"cpu": "500m", "memory": "96Mi"}}))
    found = in_cgroup(agent, "whole", *FILES)
    assert (found["cpu.max"] == "50000 100000") == ("cpu" in CONTROLLERS)
    assert (found["memory.max"] == str(96 * MIB)) == ("memory" in CONTROLLERS)
    assert said_not_to_hold(agent, "whole") == {"cpu", "memory"} - CONTROLLERS
    agent.remove("whole")


def test_burstable_pods_are_given_swap_and_take_it(new_agent: NewAgent) -> None:
    """A pod that takes more than its limit of memory goes on in its share of the swap."""
    swap, memory = psutil.swap_memory().total, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if "memory" not in CONTROLLERS or not swap:
        pytest.skip("no swap, or no memory controller: ROOTLET_VM_SWAP=4G tests/hosts/controllers has both")
    share = 48 * MIB * swap // memory
    agent = new_agent(memorySwap={"swapBehavior": "LimitedSwap"})
    agent.start()
    holds = f"dd if=/dev/zero bs={64 * MIB + share // 2} count=1 2>/dev/null | sleep 3600 & {STAY}"
    agent.run(
        pod("swaps", with_resources(holds, {"memory": "64Mi"}, {"memory": "48Mi"})),
        pod("even", with_resources(STAY, {"memory": "64Mi"}, {"memory": "64Mi"})),
        pod("best-effort"),
    )
    given = {name: in_cgroup(agent, name, "memory.swap.max")["memory.swap.max"] for name in agent.pods()}
    assert abs(int(given.pop("swaps")) - share) <= os.sysconf("SC_PAGE_SIZE")
    assert given == {"even": "0", "best-effort": "0"}
    agent.until(
        lambda: int(in_cgroup(agent, "swaps", "memory.swap.current")["memory.swap.current"]) > share // 4, "it swaps"
    )
    assert container_status(agent.pods()["swaps"])["restartCount"] == 0


def of_pod(agent: Agent, name: str, file: str) -> str:
    """From the cgroup that holds all of a pod, as the host sees it; the empty string where there is none."""
    path = Path(f"/proc/{agent.eye.container(name, 'main').pid}/cgroup").read_text().rpartition("::")[2].strip()
    slices = [parent for parent in Path(path).parents if re.search(r"libpod_pod_|-pod\w+\.slice$", parent.name)]
    return Path(f"/sys/fs/cgroup{slices[0]}", file).read_text().strip() if slices else ""


def has_pod_cgroups() -> bool:
    """Where systemd manages cgroups, for a user."""
    return podman("info", "--format", "{{.Host.CgroupManager}}").strip() == "systemd"


def test_a_pod_weighs_what_it_asks_for_and_has_its_limits_in_all(agent: Agent) -> None:
    more = {"limits": {"cpu": "500m", "memory": "96Mi"}, "requests": {"cpu": "400m"}}
    agent.run(pod("asks"), pod("asks-more", container(), container("other"), resources=more))
    if {"cpu", "memory"} <= CONTROLLERS and has_pod_cgroups():
        assert int(of_pod(agent, "asks", "cpu.weight")) < int(of_pod(agent, "asks-more", "cpu.weight"))
        assert of_pod(agent, "asks-more", "cpu.max") == "50000 100000"
        assert of_pod(agent, "asks-more", "memory.max") == str(96 * MIB)
        assert of_pod(agent, "asks", "memory.max") == "max"
    else:
        assert said_not_to_hold(agent, "asks-more") == {"cpu", "memory"} - CONTROLLERS
    agent.remove("asks", "asks-more")


def test_the_number_of_processes_is_limited_where_it_can_be(agent: Agent) -> None:
    """By Podman: a container has what containers.conf says, 2048 without."""
    agent.run(pod("forks"))
    found = in_cgroup(agent, "forks", "pids.max")["pids.max"]
    assert (found.isdecimal()) == ("pids" in CONTROLLERS), found
    agent.remove("forks")


def test_who_wants_more_cpu_than_its_limit_waits(agent: Agent) -> None:
    agent.write(pod("spins", with_resources(SPIN, {"cpu": "50m"})))
    agent.until_running(["spins"])

    def throttled() -> int:
        words = in_cgroup(agent, "spins", "cpu.stat")["cpu.stat"].split()
        return int(dict(zip(words[::2], words[1::2], strict=True)).get("nr_throttled", "0"))

    if "cpu" in CONTROLLERS:
        agent.until(lambda: throttled() > 0, "it was throttled")
    else:
        assert throttled() == 0
    agent.remove("spins")


def tells_why() -> bool:
    """Whether Podman hears of it: from conmon 2.1.6 (Debian 12) it never does, from 2.1.12 it does."""
    said = subprocess.run(["conmon", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    return tuple(int(number) for number in said.split()[2].rstrip(",").split(".")) > (2, 1, 6)


def test_who_takes_more_memory_than_its_limit_is_killed_and_backs_off(agent: Agent) -> None:
    """The hog is a child of the first process, which the kernel's choice alone would leave."""
    script = f"sh -c '{HOG}'; echo outlived; {STAY}"
    agent.write(pod("hog", with_resources(script, {"memory": "32Mi"})))
    if "memory" in CONTROLLERS:
        agent.until(lambda: agent.waiting("hog").get("reason") == "CrashLoopBackOff", "it backs off", SLOW_S)
        status = container_status(agent.pods()["hog"])
        last = status["lastState"]["terminated"]
        assert (last["reason"], last["exitCode"]) == ("OOMKilled" if tells_why() else "Error", 137)
        assert status["restartCount"] >= 1
        assert "outlived" not in agent.output("hog")
        assert "BackOff" in agent.reasons("hog")
    else:
        agent.until(lambda: agent.output("hog").split() == [str(HOGGED), "outlived"], "it has had it all")
        assert container_status(agent.pods()["hog"])["restartCount"] == 0
    assert said_not_to_hold(agent, "hog") == {"memory"} - CONTROLLERS
    agent.remove("hog")
