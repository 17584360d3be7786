"""Slices of systemd around pods: one that is stopped under its pod, and one above all of them that is smaller than the
host. On a host whose systemd manages this user's cgroups."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ipc.k8s.eviction.signals import Signal
from tests.e2e.agent import Agent, container_status, is_ready
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pod
from tests.e2e.short_node import MIB, available, evicted, has_condition, until_relieved
from tests.support.podman_service import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

COMMAND_DEADLINE_S: Final = 60.0 * PATIENCE
AGAIN_S: Final = 120.0
OF_USER: Final = f"user-{os.getuid()}.slice"
CGROUP_OF_USER: Final = Path("/sys/fs/cgroup/user.slice", OF_USER)
THRESHOLD: Final = 300 * MIB


def systemctl(*arguments: str) -> str:
    """Complaint of systemctl(1); empty when it did so."""
    try:
        done = subprocess.run(
            ["systemctl", *arguments], capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False
        )
    except FileNotFoundError:
        return "this host has no systemd"
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""


def slice_of(agent: Agent, name: str) -> str:
    """The slice in which a pod's container lies; empty where it lies in none, or ends just now."""
    try:
        text = Path(f"/proc/{agent.eye.container(name, 'main').pid}/cgroup").read_text()
    except (KeyError, OSError):
        return ""
    path = text.rpartition("::")[2].strip()
    return next((part for part in Path(path).parts if re.search(r"-pod\w+\.slice$", part)), "")


OVERTAKEN: Final = "canceled"
"""End of what systemctl(1) says of a job whose place another one has taken."""


@pytest.mark.parametrize("is_there", [True, False], ids=["beside the agent", "while there is no agent"])
def test_a_pod_whose_slice_is_stopped_is_made_again(agent: Agent, is_there: bool) -> None:
    """The containers end first. An agent that hears of it starts them again in the slice, which calls off what is left
    of the stop; to one that comes when all is over the slice is missing."""
    agent.run(pod("sliced"), pod("beside"))
    before = {name: container_status(agent.pods()[name])["containerID"] for name in ("sliced", "beside")}
    made = slice_of(agent, "sliced")
    if not made:
        pytest.skip("pods have no slices here")
    if is_there:
        problem = systemctl("--user", "stop", made)
        assert problem.removesuffix(".").endswith(OVERTAKEN) or problem == ""
    else:
        agent.stop()
        assert systemctl("--user", "stop", made) == ""
        agent.start()

    def is_there_again() -> bool:
        found = agent.pods()["sliced"]
        is_another = is_ready(found) and container_status(found)["containerID"] != before["sliced"]
        return is_another and slice_of(agent, "sliced") == made

    agent.until(is_there_again, "it runs again in its slice", AGAIN_S)
    assert container_status(agent.pods()["beside"])["containerID"] == before["beside"]
    agent.remove("sliced", "beside")
    agent.until_gone(["sliced", "beside"])


@pytest.fixture
def limited_user() -> Iterator[None]:
    """The slice of all of this user's processes may have its working set and some memory more."""
    if not (CGROUP_OF_USER / "memory.current").exists():
        pytest.skip("this user has no slice that counts memory")
    used = int((CGROUP_OF_USER / "memory.current").read_text())
    inactive = re.search(r"^inactive_file (\d+)", (CGROUP_OF_USER / "memory.stat").read_text(), re.MULTILINE)
    assert inactive is not None
    limit = used - int(inactive[1]) + THRESHOLD * 2 // 3
    if problem := limit_memory_of_user(str(limit)):
        pytest.skip(f"this user may not limit {OF_USER}: {problem}")
    yield
    assert limit_memory_of_user("infinity") == ""


def limit_memory_of_user(limit: str) -> str:
    return systemctl("--no-ask-password", "set-property", "--runtime", OF_USER, f"MemoryMax={limit}")


@pytest.mark.usefixtures("limited_user")
def test_memory_of_the_users_slice_counts_where_it_has_less_left_than_the_host(new_agent: NewAgent) -> None:
    """A soft threshold with an hour's grace: nobody goes."""
    agent = new_agent(
        evictionSoft={"memory.available": str(THRESHOLD)},
        evictionSoftGracePeriod={"memory.available": "1h"},
        evictionPressureTransitionPeriod="5s",
    )
    agent.start()
    agent.until(lambda: has_condition(agent, "MemoryPressure"), "the slice has too little left")
    assert available(Signal.MEMORY_AVAILABLE) < THRESHOLD
    assert limit_memory_of_user("infinity") == ""
    assert available(Signal.MEMORY_AVAILABLE) > THRESHOLD, "the host has enough"
    until_relieved(agent, "MemoryPressure")
    assert evicted(agent) == []
