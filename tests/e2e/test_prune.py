"""Somebody removes what is left of containers that have ended, as people do every week: nothing of it runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.agent import Agent, Json, container_status
from tests.e2e.booted_host import BootedHost, booted_host
from tests.e2e.conftest import NewAgent
from tests.e2e.expected_histories import GATE, let_through
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import IMAGE, podman
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ONCE = "echo said; exit 0"
PODS = {
    "never": pod("never", container(script=ONCE), restartPolicy="Never"),
    "failed": pod("failed", container(script="echo said; exit 3"), restartPolicy="Never"),
    "succeeded": pod("succeeded", container(script=ONCE), restartPolicy="OnFailure"),
    "half": pod("half", container(script=ONCE), container("other"), restartPolicy="Never"),
    "half-retried": pod("half-retried", container(script=ONCE), container("other"), restartPolicy="OnFailure"),
    "initialized": pod("initialized", container("other"), initContainers=[container("main", ONCE)]),
    "initializing": pod(
        "initializing",
        container("other"),
        initContainers=[container("main", ONCE), container("second", f"echo said; {GATE}")],
    ),
    "looked-at": pod("looked-at", container("other"), ephemeralContainers=[container("main", ONCE)]),
    "web": pod("web", container("main", f"echo said; {STAY}")),
}
"""In each the container ``main`` has ended for good, but for ``web``."""
DONE = {"never": "Succeeded", "failed": "Failed", "succeeded": "Succeeded"}
PRUNES = {
    "containers": [("container", "prune", "--force")],
    "pods": [("pod", "prune", "--force")],
    "system": [("system", "prune", "--force")],
    "all": [("container", "prune", "--force"), ("pod", "prune", "--force"), ("system", "prune", "--force")],
}


OFTEN = {"containers-without the agent"}
"""Prunes and moments that are tried in every run."""
MOMENTS = [
    (pytest.param if f"{kind}-{moment}" in OFTEN else seldom)(prunes, while_it_runs, id=f"{kind}-{moment}")
    for kind, prunes in PRUNES.items()
    for moment, while_it_runs in (("beside the agent", True), ("without the agent", False))
]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[BootedHost]:
    """A Podman of its own: a prune takes what is anybody's."""
    with booted_host(monkeypatch) as made:
        yield made


def end_of(agent: Agent, name: str) -> Json:
    found: Json = container_status(agent.pods()[name]).get("state", {}).get("terminated", {})
    return found


def ends(agent: Agent) -> dict[str, Json]:
    return {name: end_of(agent, name) for name in PODS if name != "web"}


def until_begun(agent: Agent) -> dict[str, Json]:
    """Ends of all that has ended."""
    agent.write(*PODS.values())
    agent.until(lambda: PODS.keys() <= agent.pods().keys(), "all pods are known")
    agent.until(lambda: all(ends(agent).values()), "everything has ended")
    agent.until_ready(["initialized", "looked-at", "web"])
    agent.until(lambda: {n: agent.pods()[n]["status"]["phase"] for n in DONE} == DONE, "pods are done")
    agent.until(lambda: agent.output("initializing", "second").split() == ["said"], "the second has begun")
    return ends(agent)


def assert_nothing_ran_again(agent: Agent, before: dict[str, Json]) -> None:
    """Also not in the syncs that follow."""
    agent.run(pod("later"))
    assert ends(agent) == before
    for name in PODS:
        assert agent.output(name).split() == ["said"], name
        assert container_status(agent.pods()[name])["restartCount"] == 0, name
    assert {name: agent.pods()[name]["status"]["phase"] for name in DONE} == DONE
    let_through(agent, "initializing", "second")
    agent.until_ready(["initializing"])
    assert agent.output("initializing").split() == ["said"]


@pytest.mark.parametrize(("prunes", "while_it_runs"), MOMENTS)
def test_what_ended_for_good_never_runs_again(
    host: BootedHost, new_agent: NewAgent, prunes: list[tuple[str, ...]], while_it_runs: bool
) -> None:
    agent = host.new_agent(new_agent)
    before = until_begun(agent)
    if not while_it_runs:
        agent.stop()
    for prune in prunes:
        podman(*prune)
    if not while_it_runs:
        agent.start()
        agent.until(lambda: all(ends(agent).values()), "the ends are known")
    assert_nothing_ran_again(agent, before)
    agent.restart()
    agent.until(lambda: all(ends(agent).values()), "the next agent knows them, too")
    assert ends(agent) == before


def test_a_pod_that_restarts_nothing_goes_on_where_it_was(host: BootedHost, new_agent: NewAgent) -> None:
    """Somebody removes it between its init containers and its regular one. The sidecar has to run beside that one."""
    agent, late = host.new_agent(new_agent), "localhost/late:1"
    sidecar = container("beside", f"echo said; {STAY}", restartPolicy="Always")
    job = container("later", f"echo said; {STAY}", image=late)
    agent.write(pod("job", job, initContainers=[container("main", ONCE), sidecar], restartPolicy="Never"))
    no_image = "ErrImageNeverPull"
    agent.until(lambda: agent.waiting("job", "later").get("reason") == no_image, "its init containers are behind it")
    agent.until(lambda: agent.output("job", "beside").split() == ["said"], "its sidecar runs")
    podman("pod", "rm", "--force", "--time", "0", agent.eye.container("job", "beside").podman_pod)
    podman("tag", IMAGE, late)
    expected = {"main": ["said"], "beside": ["said", "said"], "later": ["said"]}
    agent.until(lambda: {n: agent.output("job", n).split() for n in expected} == expected, "it goes on where it was")
    agent.until_ready(["job"])


def test_whose_manifest_is_edited_or_written_anew_runs_again(host: BootedHost, new_agent: NewAgent) -> None:
    agent = host.new_agent(new_agent)
    agent.write(PODS["half-retried"], PODS["never"])
    agent.until(lambda: {"half-retried", "never"} <= agent.pods().keys(), "both are known")
    agent.until(lambda: bool(end_of(agent, "half-retried")) and bool(end_of(agent, "never")), "both have ended")
    podman("container", "prune", "--force")
    edited = container(script="echo again; exit 0")
    agent.write(pod("half-retried", edited, container("other"), restartPolicy="OnFailure"))
    agent.until(lambda: agent.output("half-retried").split() == ["said", "again"], "it runs as it is wanted now")
    agent.remove("never")
    agent.until_gone(["never"])
    agent.write(PODS["never"])
    agent.until(lambda: "never" in agent.pods() and bool(end_of(agent, "never")), "the next pod of that name runs")


@pytest.mark.parametrize("policy", [seldom("Always"), "OnFailure"])
def test_what_ran_when_it_was_removed_runs_again(host: BootedHost, new_agent: NewAgent, policy: str) -> None:
    agent = host.new_agent(new_agent)
    agent.run(pod("web", container(script=f"echo said; {STAY}"), restartPolicy=policy))
    podman("rm", "--force", "--time", "0", agent.eye.container("web", "main").id)
    agent.until(lambda: agent.output("web").split() == ["said", "said"], "it runs again")
    agent.until(lambda: container_status(agent.pods()["web"])["restartCount"] == 1, "that is one restart")


@pytest.mark.parametrize(
    "while_it_runs", [pytest.param(True, id="beside the agent"), seldom(False, id="without the agent")]
)
def test_what_ran_when_it_was_removed_is_told_to_have_ended_and_its_policy_decides(
    host: BootedHost, new_agent: NewAgent, while_it_runs: bool
) -> None:
    agent = host.new_agent(new_agent)
    script = f"echo said; {STAY}"
    agent.run(pod("web", container(script=script)))
    agent.run(pod("never", container(script=script), restartPolicy="Never"))
    ids = [agent.eye.container(name, "main").id for name in ("web", "never")]
    if not while_it_runs:
        agent.stop()
    podman("rm", "--force", "--time", "0", *ids)
    if not while_it_runs:
        agent.start()
    agent.until(lambda: agent.output("web").split() == ["said", "said"], "it runs again")
    agent.until_ready(["web"])
    last = container_status(agent.pods()["web"])["lastState"]["terminated"]
    assert last["exitCode"] == 137, "Podman has said so before it forgot it, or it ended unseen"
    assert container_status(agent.pods()["web"])["restartCount"] == 1
    agent.until(lambda: agent.pods()["never"]["status"]["phase"] == "Failed", "what restarts no more has failed")
    assert end_of(agent, "never")["exitCode"] == 137
    assert agent.output("never").split() == ["said"]


@pytest.mark.parametrize(
    "while_it_runs", [seldom(True, id="beside the agent"), pytest.param(False, id="without the agent")]
)
def test_an_ephemeral_container_that_is_removed_as_it_runs_has_had_its_run(
    host: BootedHost, new_agent: NewAgent, while_it_runs: bool
) -> None:
    agent = host.new_agent(new_agent)
    looks = container("main", f"echo said; {STAY}")
    agent.write(pod("looked-at", container("other"), ephemeralContainers=[looks]))
    agent.until(lambda: agent.output("looked-at").split() == ["said"], "it has begun")
    agent.until(lambda: "running" in container_status(agent.pods()["looked-at"])["state"], "it is seen to run")
    found = next(seen for seen in agent.eye.containers("looked-at") if seen.name == "main")
    remove: Callable[[], str] = lambda: podman("rm", "--force", "--time", "0", found.id)  # noqa: E731
    if while_it_runs:
        remove()
    else:
        agent.stop()
        remove()
        agent.start()
    agent.until(lambda: bool(end_of(agent, "looked-at")), "its end is told")
    assert end_of(agent, "looked-at")["exitCode"] == 137
    agent.run(pod("later"))
    assert agent.output("looked-at").split() == ["said"]
