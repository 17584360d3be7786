"""The host goes down under its pods and boots again: what ended keeps its end, what ran did not complete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipc.host.clock import parse_rfc3339, wall
from tests.e2e.agent import Agent, Json, container_status
from tests.e2e.booted_host import BootedHost
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.variants import seldom

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.podman,
    pytest.mark.parametrize("store", ["default", "transient"], indirect=True),
]

PODS = {
    "web": pod("web", container(script=f"echo said; {STAY}")),
    "never": pod("never", container(script="echo said; exec sleep 1000"), restartPolicy="Never"),
    "retried": pod("retried", container(script="echo said; exec sleep 1000"), restartPolicy="OnFailure"),
    "done": pod("done", container(script="echo said; exit 0"), restartPolicy="Never"),
    "failed": pod("failed", container(script="echo said; exit 3"), restartPolicy="Never"),
    "succeeded": pod("succeeded", container(script="echo said; exit 0"), restartPolicy="OnFailure"),
    "begun": pod(
        "begun", container(script=f"echo said; {STAY}"), initContainers=[container("init", "echo said; exit 0")]
    ),
}
LOST = (137, "ContainerStatusUnknown")


@pytest.fixture(
    params=[
        pytest.param(BootedHost.power_cut, id="power cut"),
        seldom(BootedHost.reboot, id="reboot"),
        seldom(BootedHost.users_processes_killed, id="all processes killed"),
    ],
)
def goes_down(request: pytest.FixtureRequest) -> Callable[[BootedHost, Agent], None]:
    how: Callable[[BootedHost, Agent], None] = request.param
    return how


def phase(agent: Agent, name: str) -> str:
    return str(agent.pods().get(name, {"status": {}})["status"].get("phase", ""))


def ended(agent: Agent, name: str, where: str = "state") -> Json:
    found: Json = container_status(agent.pods()[name]).get(where, {}).get("terminated", {})
    return found


def how(end: Json) -> tuple[int, str]:
    return end["exitCode"], end["reason"]


def until_as_begun(agent: Agent) -> None:
    agent.until_running(["web", "never", "retried", "begun"])
    for name, wanted in {"done": "Succeeded", "failed": "Failed", "succeeded": "Succeeded"}.items():
        agent.until(lambda name=name, wanted=wanted: phase(agent, name) == wanted, f"{name} is {wanted}")  # type: ignore[misc]


def test_what_ran_has_not_completed_and_what_ended_keeps_its_end(
    host: BootedHost, goes_down: Callable[[BootedHost, Agent], None], new_agent: NewAgent
) -> None:
    agent = host.new_agent(new_agent)
    agent.write(*PODS.values())
    until_as_begun(agent)
    before = {name: ended(agent, name) for name in ("done", "failed", "succeeded")}
    goes_down(host, agent)
    down_at = wall()
    agent.start()
    # Restarted by their policy, and their last state says how it was.
    agent.until_ready(["web", "retried", "begun"])
    for name in ("web", "retried", "begun"):
        status = container_status(agent.pods()[name])
        assert how(status["lastState"]["terminated"]) == LOST, name
        assert status["restartCount"] == 1, name
        assert agent.output(name).split() == ["said", "said"]
    # Not restarted: failed, not succeeded.
    agent.until(lambda: phase(agent, "never") == "Failed", "what ran and is not restarted has failed")
    assert how(ended(agent, "never")) == LOST
    assert agent.row("never")[2] == "ContainerStatusUnknown"
    assert agent.output("never").split() == ["said"]
    # As they were, though Podman may have lost the ends of a moment ago: it notes them a second later.
    for name, end in before.items():
        agent.until(lambda name=name: bool(ended(agent, name)), f"{name} is known to have ended")  # type: ignore[misc]
        assert ended(agent, name) == end
        assert agent.output(name).split() == ["said"], name
        assert container_status(agent.pods()[name])["restartCount"] == 0
    assert [phase(agent, name) for name in before] == ["Succeeded", "Failed", "Succeeded"]
    assert all(parse_rfc3339(end["finishedAt"]) <= down_at for end in before.values())
    # Without a boot nothing tells when it ended.
    known_by = down_at if goes_down is not BootedHost.users_processes_killed else wall()
    assert parse_rfc3339(ended(agent, "never")["finishedAt"]) <= known_by
