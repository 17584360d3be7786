"""activeDeadlineSeconds: a pod that is active for too long is ended, whatever happened to its agent meanwhile."""

from __future__ import annotations

import pytest

from ipc.host.clock import parse_rfc3339, wall
from tests.e2e.agent import Agent, Json, container_status
from tests.e2e.manifests import container, pod
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

STUBBORN = "trap 'echo asked; sleep 2; echo over; exit 3' TERM; while true; do sleep 0.1; done"
"""Needs two seconds of its grace period."""


def status_of(agent: Agent, name: str) -> Json:
    """With an empty phase while the agent does not know it."""
    found: Json = agent.pods().get(name, {}).get("status", {"phase": ""})
    return found


def until_exceeded(agent: Agent, name: str, deadline_s: float = 60) -> Json:
    agent.until(lambda: status_of(agent, name)["phase"] == "Failed", f"{name} has failed", deadline_s)
    status = status_of(agent, name)
    assert status["reason"] == "DeadlineExceeded"
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    return status


def active_s(status: Json) -> float:
    """From the pod's start to the end of its container."""
    ended = container_status({"status": status})["state"]["terminated"]
    return parse_rfc3339(ended["finishedAt"]) - parse_rfc3339(status["startTime"])


def test_a_pod_that_is_active_for_too_long_is_asked_to_stop_and_fails(agent: Agent) -> None:
    agent.run(pod("too-long", container(script=STUBBORN), terminationGracePeriodSeconds=20, activeDeadlineSeconds=8))
    status = until_exceeded(agent, "too-long")
    assert container_status({"status": status})["state"]["terminated"]["exitCode"] == 3, "it had its grace period"
    assert 8 <= active_s(status) < 60
    assert agent.cli("logs", "too-long").out == "asked\nover\n"
    [event] = [event for event in agent.events("too-long") if event["reason"] == "DeadlineExceeded"]
    assert (event["type"], event["message"]) == ("Normal", status["message"])
    conditions = {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}
    assert conditions["Ready"] == conditions["ContainersReady"] == ("False", "PodFailed")
    agent.until(lambda: not agent.eye.running("too-long"), "nothing of it runs")
    agent.remove("too-long")
    agent.until_gone(["too-long"])


@pytest.mark.slow
def test_who_is_done_in_time_has_exceeded_nothing(agent: Agent) -> None:
    agent.write(pod("in-time", container(script="exit 0"), restartPolicy="Never", activeDeadlineSeconds=9))
    agent.until(lambda: status_of(agent, "in-time")["phase"] == "Succeeded", "it is done")
    started_at = parse_rfc3339(status_of(agent, "in-time")["startTime"])
    agent.until(lambda: wall() > started_at + 10, "its deadline is over")
    agent.restart()
    agent.until(lambda: status_of(agent, "in-time")["phase"] == "Succeeded", "it is still done")
    assert "reason" not in status_of(agent, "in-time")
    agent.remove("in-time")
    agent.until_gone(["in-time"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["restart", "kill -9"])
def test_the_deadline_counts_from_the_start_also_for_the_next_agent(agent: Agent, how: str) -> None:
    name = f"counted-{how.split()[0]}"
    agent.run(pod(name, activeDeadlineSeconds=12))
    before = status_of(agent, name)["startTime"]
    if how == "restart":
        agent.restart()
    else:
        agent.kill_and_recover("master")
    status = until_exceeded(agent, name)
    assert abs(parse_rfc3339(status["startTime"]) - parse_rfc3339(before)) <= 2, "the sandbox was made a moment later"
    assert 11 <= active_s(status) < 32
    agent.restart()
    assert until_exceeded(agent, name)["startTime"] == status["startTime"], "and for the one after"
    agent.remove(name)
    agent.until_gone([name])


@pytest.mark.slow
def test_the_deadline_counts_over_the_sandboxes_of_a_pod_also_for_the_next_agent(agent: Agent) -> None:
    """The second container ends well when it is asked to: only the time says that the pod has failed."""
    script = "code=1; [ -e /v/once ] && code=0; touch /v/once; trap 'exit $code' TERM; while true; do sleep 0.1; done"
    main = container(script=script, volumeMounts=[{"name": "v", "mountPath": "/v"}])
    volumes = [{"name": "v", "emptyDir": {}}]
    agent.run(pod("replaced", main, volumes=volumes, restartPolicy="OnFailure", activeDeadlineSeconds=40))
    before = agent.eye.running("replaced")
    podman("kill", "--signal", "KILL", before["replaced", INFRA].id)

    def has_another() -> bool:
        infra = agent.eye.running("replaced").get(("replaced", INFRA))
        return infra is not None and infra.attempt == 1

    agent.until(has_another, "its sandbox is replaced")
    status = until_exceeded(agent, "replaced")
    agent.until(lambda: not agent.eye.running("replaced"), "nothing of it runs")
    agent.restart()
    assert until_exceeded(agent, "replaced")["startTime"] == status["startTime"]
    agent.remove("replaced")
    agent.until_gone(["replaced"])


def test_a_deadline_can_be_moved_while_the_pod_runs(agent: Agent) -> None:
    agent.run(pod("moved", activeDeadlineSeconds=600))
    before = agent.eye.pod_table("moved")
    agent.write(pod("moved", activeDeadlineSeconds=700))
    agent.until(lambda: agent.pods()["moved"]["spec"]["activeDeadlineSeconds"] == 700, "it is raised")
    assert agent.eye.pod_table("moved") == before, "that touches no container"
    agent.write(pod("moved", activeDeadlineSeconds=1))
    until_exceeded(agent, "moved")
    agent.remove("moved")
    agent.until_gone(["moved"])
