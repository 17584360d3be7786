"""Podman says what is not so: the agent notices it, and every pod comes right."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import psutil
import pytest

from tests.e2e.agent import Agent, container_status, restart_count
from tests.e2e.manifests import IGNORE_TERM, container, pod
from tests.e2e.status_observer import INFRA, Seen
from tests.support.podman_service import podman, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LEAVE_S = 10.0


def monitor_of(seen: Seen) -> psutil.Process:
    """The conmon of a container."""
    return psutil.Process(int(podman("inspect", "--format", "{{.State.ConmonPid}}", seen.id)))


def kill(*pids: int) -> None:
    """kill -9, one after the other, each dead before the next."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: is_dead(pid), LEAVE_S)  # type: ignore[misc]


def is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill_unnoticed(seen: Seen) -> None:
    """First who would tell Podman, then the container."""
    kill(monitor_of(seen).pid, seen.pid)


def restarted(agent: Agent, name: str, *, count: int = 1) -> dict[str, Any]:
    """The container's status when it runs again and Podman lists it once."""
    agent.until(lambda: restart_count(agent.pods()[name]) == count, f"{name} is restarted")
    agent.until_ready([name])
    agent.until(lambda: len(agent.eye.containers(name)) == 1, "what Podman says runs is what runs")
    return container_status(agent.pods()[name])


def test_an_end_that_podman_never_notices(agent: Agent) -> None:
    agent.run(pod("unnoticed", container(), container("other")))
    before = agent.eye.running("unnoticed")
    main = before["unnoticed", "main"]
    conmon = monitor_of(main)
    kill(conmon.pid)
    assert psutil.pid_exists(main.pid)
    observation_requests = agent.workers()["node"]["counters"]["runtime_calls"]
    agent.until(
        lambda: agent.workers()["node"]["counters"]["runtime_calls"] > observation_requests + 1, "it looked again"
    )
    assert restart_count(agent.pods()["unnoticed"]) == 0, "a dead monitor under a living container is no end"
    assert agent.eye.running("unnoticed") == before
    kill(main.pid)
    agent.until(lambda: restart_count(agent.pods()["unnoticed"]) == 1, "it is restarted")
    agent.until_ready(["unnoticed"])
    status = container_status(agent.pods()["unnoticed"])
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "ContainerStatusUnknown")
    agent.until(lambda: len(agent.eye.containers("unnoticed")) == 2, "what Podman says runs is what runs")
    now = agent.eye.running("unnoticed")
    assert status["containerID"] == f"podman://{now['unnoticed', 'main'].id}"
    for other in ("other", INFRA):
        assert now["unnoticed", other].lifecycle == before["unnoticed", other].lifecycle


def test_a_job_whose_end_nobody_saw_is_not_done(agent: Agent) -> None:
    agent.run(pod("job", restartPolicy="Never"))
    kill_unnoticed(agent.eye.container("job", "main"))
    agent.until(lambda: agent.pods()["job"]["status"]["phase"] == "Failed", "it has failed")
    ended = container_status(agent.pods()["job"])["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    agent.remove("job")
    agent.until_gone(["job"])


def test_an_infra_container_that_ends_unnoticed_under_living_ones(agent: Agent) -> None:
    agent.run(pod("no-infra"))
    before = agent.eye.running("no-infra")
    kill_unnoticed(before["no-infra", INFRA])

    def is_new() -> bool:
        ids = {c.id for c in agent.eye.containers("no-infra", infra=True)}
        return len(ids) == 2 and ids.isdisjoint(c.id for c in before.values())

    agent.until(is_new, "another sandbox with the container in it, and nothing of the old one")
    agent.until_ready(["no-infra"])
    assert is_dead(before["no-infra", "main"].pid)
    assert agent.eye.running("no-infra")["no-infra", INFRA].attempt == 1


def test_what_ended_while_there_was_no_agent(agent: Agent) -> None:
    agent.run(pod("alone"))
    main = agent.eye.container("alone", "main")
    agent.stop()
    kill_unnoticed(main)
    agent.start()
    status = restarted(agent, "alone")
    assert status["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


@pytest.mark.slow
def test_a_pod_that_goes_down_without_any_monitor(agent: Agent) -> None:
    agent.run(pod("unwatched", container(), container("other")))
    before = agent.eye.running("unwatched")
    kill(*(monitor_of(seen).pid for seen in before.values()))
    agent.remove("unwatched")
    agent.until_gone(["unwatched"])
    assert all(is_dead(seen.pid) for seen in before.values())


def test_a_removal_that_was_broken_off(agent: Agent) -> None:
    """The removal is repeated, whatever state the container is in then."""
    agent.run(pod("half-gone"))
    main = agent.eye.container("half-gone", "main")
    with subprocess.Popen(["podman", "rm", "--force", "--time", "0", main.id]) as removal:
        wait_until(lambda: is_dead(main.pid), LEAVE_S, 0.002)
        removal.kill()
    agent.until(lambda: restart_count(agent.pods()["half-gone"]) == 1, "it is restarted")
    agent.until_ready(["half-gone"])
    agent.until(
        lambda: main.id not in {c.id for c in agent.eye.containers("half-gone")} or is_exited(main), "it is over"
    )


def is_exited(seen: Seen) -> bool:
    return podman("inspect", "--format", "{{.State.Status}}", seen.id).strip() == "exited"


@pytest.mark.slow
def test_a_stop_that_was_abandoned(agent: Agent) -> None:
    agent.run(pod("half-stopped", container("main", IGNORE_TERM), terminationGracePeriodSeconds=1))
    main = agent.eye.container("half-stopped", "main")
    with subprocess.Popen(["podman", "stop", "--time", "1000", main.id]) as stop:
        wait_until(lambda: agent.eye.containers("half-stopped")[0].state == "stopping", LEAVE_S)
        stop.kill()
    agent.until(lambda: restart_count(agent.pods()["half-stopped"]) == 1, "it is restarted", 90.0)
    agent.until_ready(["half-stopped"])
    assert is_dead(main.pid)
