"""Sidecars (init containers with restartPolicy Always): up before the rest, down after it, restarted in any case."""

from __future__ import annotations

import pytest

from tests.e2e.agent import CLI_DEADLINE_S, Agent, Json, container_status, restart_count
from tests.e2e.expected_histories import GATE, TELLS_ITS_END, in_order, let_through, log_words, told_by
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def sidecar(name: str, script: str = TELLS_ITS_END) -> Json:
    return container(name, script, restartPolicy="Always")


def test_they_start_in_order_and_end_in_reverse_after_the_main_containers(agent: Agent) -> None:
    inits = [sidecar("outer"), container("setup", "echo done"), sidecar("inner")]
    agent.run(pod("ordered", container(script=TELLS_ITS_END), initContainers=inits, terminationGracePeriodSeconds=20))
    assert agent.row("ordered")[1:4] == ["3/3", "Running", "0"]
    assert told_by(agent, "ordered") == ["outer: up", "setup: done", "inner: up", "main: up"]
    # Logs go with their pod: somebody has to read along.
    with agent.following(*log_words("ordered"), "-f") as follows:
        assert follows.stdout is not None
        beginnings = [follows.stdout.readline() for _ in range(4)]
        assert in_order("".join(beginnings)) == ["outer: up", "setup: done", "inner: up", "main: up"]
        agent.remove("ordered")
        agent.until_gone(["ordered"])
        ends = follows.stdout.read()
        assert follows.wait(CLI_DEADLINE_S) == 0
    expected = [f"{name}: {words}" for name in ("main", "inner", "outer") for words in ("asked", "gone")]
    assert in_order(ends) == expected


def test_a_job_is_done_when_its_main_container_is_and_takes_its_sidecar_along(agent: Agent) -> None:
    job = container(script=f"echo at work; {GATE}; echo done")
    agent.run(pod("job", job, initContainers=[sidecar("helper")], restartPolicy="Never"))
    assert agent.row("job")[1:3] == ["2/2", "Running"]
    let_through(agent, "job", "main")
    agent.until(lambda: agent.pods()["job"]["status"]["phase"] == "Succeeded", "it is done")
    agent.until(lambda: not agent.eye.running("job"), "nothing of it runs any more")
    expected = ["helper: up", "main: at work", "main: done", "helper: asked", "helper: gone"]
    assert told_by(agent, "job") == expected
    assert agent.row("job")[1:4] == ["0/2", "Completed", "0"]
    helper = container_status(agent.pods()["job"], "helper")
    assert (helper["restartCount"], helper["state"]["terminated"]["exitCode"]) == (0, 0)


def test_one_that_crashes_is_restarted_though_the_pod_never_is(agent: Agent) -> None:
    agent.run(pod("crashes", container(), initContainers=[sidecar("helper", STAY)], restartPolicy="Never"))
    before = agent.eye.running("crashes")
    podman("kill", "--signal", "KILL", before["crashes", "helper"].id)
    agent.until(lambda: restart_count(agent.pods()["crashes"], "helper") == 1, "it is restarted")
    agent.until_ready(["crashes"])
    now = agent.eye.running("crashes")
    assert now["crashes", "helper"].id != before["crashes", "helper"].id
    for other in ("main", INFRA):
        assert now["crashes", other].lifecycle == before["crashes", other].lifecycle
    assert agent.row("crashes")[1:4] == ["2/2", "Running", "1"]
    last = container_status(agent.pods()["crashes"], "helper")["lastState"]["terminated"]
    assert last["exitCode"] == 137
    assert "    Restart Policy:  Always\n" in agent.describe("crashes")
