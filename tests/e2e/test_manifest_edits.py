"""Manifests that change while their pods run: what changed is replaced, the rest stays; a bad edit changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.agent import Agent, Json, container_status, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.variants import often, seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

MISSING_IMAGE = "localhost/rootlet-test-that-nobody-has-made:latest"


def saying(words: str) -> str:
    """A script."""
    return f"echo {words}; {STAY}"


def says(agent: Agent, name: str, *container: str) -> str:
    """Log of the container, whole."""
    return agent.cli("logs", name, *(f"--container={each}" for each in container)).out


def test_only_the_changed_container_is_replaced(agent: Agent) -> None:
    agent.run(pod("edited", container(script=saying("old")), container("stays")))
    before = agent.eye.running("edited")
    agent.write(pod("edited", container(script=saying("new")), container("stays")))
    agent.until(lambda: says(agent, "edited", "main") == "new\n", "the new definition runs")
    agent.until_ready(["edited"])
    now = agent.eye.running("edited")
    assert now["edited", "main"].id != before["edited", "main"].id
    for other in ("stays", INFRA):
        assert now["edited", other].lifecycle == before["edited", other].lifecycle
    shown = agent.pods()["edited"]
    assert (restart_count(shown, "main"), restart_count(shown, "stays")) == (1, 0)
    assert container_status(shown)["containerID"] == f"podman://{now['edited', 'main'].id}"
    assert any("definition changed" in event["message"] for event in agent.events("edited"))


def test_another_hostname_is_another_sandbox(agent: Agent) -> None:
    def named(hostname: str) -> Json:
        return pod("renamed", container(script=saying("$(hostname)")), container("other"), hostname=hostname)

    agent.run(named("first"))
    before = agent.eye.running("renamed")
    assert says(agent, "renamed", "main") == "first\n"
    agent.write(named("second"))
    agent.until(lambda: says(agent, "renamed", "main") == "second\n", "it has the new name")
    agent.until_ready(["renamed"])
    now = agent.eye.running("renamed")
    assert now.keys() == before.keys()
    assert {c.id for c in now.values()}.isdisjoint(c.id for c in before.values())
    assert now["renamed", INFRA].attempt == 1
    assert "(attempt 1, ready)" in agent.describe("renamed")
    agent.until(lambda: len(agent.eye.containers("renamed", infra=True)) == 3, "nothing is left of the old sandbox")
    assert "SandboxChanged" in {event["reason"] for event in agent.events("renamed")}


def test_a_changed_label_touches_no_container(agent: Agent) -> None:
    agent.run(pod("labelled"))
    before = agent.eye.pod_table("labelled")
    agent.write(pod("labelled", labels={"tier": "front"}))
    agent.until(lambda: agent.cli("get", "pods", "-l", "tier=front", "-o", "name").out != "", "the label is there")
    agent.until_ready(["labelled"])
    assert agent.eye.pod_table("labelled") == before


def _with(**spec: Any) -> Callable[[str], str]:
    return lambda name: json.dumps(pod(name, container(script=saying("bad")), **spec))


BAD_EDITS: dict[str, tuple[Callable[[str], str], str]] = {
    # the manifest, and the words that the event about it must have
    "syntax": (lambda name: "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n", "bad-syntax.yaml: document 1: "),
    "unknown-field": (_with(hostnam="x"), "bad-unknown-field.yaml: document 1: spec.hostnam: unknown field"),
    "wrong-type": (_with(hostname=7), "bad-wrong-type.yaml: document 1: spec.hostname: "),
    "refused-field": (
        _with(schedulingGates=[{"name": "g"}]),
        "bad-refused-field.yaml: document 1: spec.schedulingGates: not supported: ",
    ),
    "empty": (lambda name: "", "bad-empty.yaml: "),
}


@pytest.mark.parametrize("kind", often([*BAD_EDITS], "syntax"))
def test_a_bad_edit_changes_nothing_until_it_is_mended(agent: Agent, kind: str) -> None:
    name, (edit, words) = f"bad-{kind}", BAD_EDITS[kind]
    agent.run(pod(name, container(script=saying("good"))))
    before = agent.eye.pod_table(name)
    agent.write_file(f"{name}.yaml", edit(name))
    agent.until(lambda: any(words in event["message"] for event in agent.events()), "it is told")
    # A pod that comes later is started, and this one is as it was.
    agent.run(pod(f"after-{kind}"))
    assert agent.eye.pod_table(name) == before
    agent.until_ready([name])
    agent.run(pod(name, container(script=saying("mended"))))
    agent.until(lambda: says(agent, name) == "mended\n", "the mended manifest counts")
    assert agent.eye.running(name)[name, INFRA].id == before[name, INFRA][0]


@pytest.mark.slow
def test_a_refused_edit_and_a_restart_of_the_agent_change_nothing(agent: Agent) -> None:
    name = "refused"
    agent.run(pod(name, container(script=saying("good"))))
    before = agent.eye.pod_table(name)
    words = f"{name}.yaml: document 1: spec.schedulingGates: not supported: "
    agent.write(pod(name, container(script=saying("bad")), schedulingGates=[{"name": "g"}]))
    agent.until(lambda: any(words in event["message"] for event in agent.events()), "it is told")
    agent.restart()
    agent.until(lambda: any(words in e["message"] and e["count"] > 1 for e in agent.events()), "it is told again")
    # A pod that comes later is started: this set was read and acted on.
    agent.run(pod("after-refused"))
    agent.until_ready([name])
    assert agent.eye.pod_table(name) == before
    agent.run(pod(name, container(script=saying("mended"))))
    agent.until(lambda: says(agent, name) == "mended\n", "the mended manifest counts")
    assert agent.eye.running(name)[name, INFRA].id == before[name, INFRA][0]


@pytest.mark.parametrize("more", [seldom({}, id="an image"), pytest.param({"hostname": "other"}, id="the sandbox too")])
def test_a_wrong_image_is_no_outage(agent: Agent, more: Json) -> None:
    """Different from upstream, which stops the old container before the new image is looked for."""
    name = "kept-sandbox" if more else "kept"
    agent.run(pod(name, container(script=saying("old")), container("stays")))
    before = agent.eye.pod_table(name)
    wrong = container(image=MISSING_IMAGE, imagePullPolicy="IfNotPresent")
    agent.write(pod(name, wrong, container("stays"), **more))

    def put_off() -> int:
        return sum(e.get("count", 1) for e in agent.events(name) if e["reason"] == "ReplacementPutOff")

    agent.until(lambda: put_off() > 1, "it is told, and tried again")
    assert agent.eye.pod_table(name) == before
    assert is_ready(agent.pods()[name])
    described = agent.cli("describe", "pod", name).out
    assert "Container main goes on as it was made: no image for its new definition" in described
    assert f'Failed to pull image "{MISSING_IMAGE}"' in described
    agent.restart()
    agent.until(lambda: put_off() > 0, "the next agent keeps it, too")
    assert agent.eye.pod_table(name) == before
    agent.run(pod(name, container(script=saying("mended")), container("stays"), **more))
    agent.until(lambda: says(agent, name, "main") == "mended\n", "the mended manifest counts")
    now = agent.eye.pod_table(name)
    assert now.keys() == before.keys()
    assert (now[name, "stays"] == before[name, "stays"]) is not bool(more)


@pytest.mark.slow
def test_the_kubelets_order_stops_the_container_of_a_missing_image_alone(new_agent: NewAgent) -> None:
    agent = new_agent(keepUntilImagesPulled=False)
    agent.start()
    agent.run(pod("no-image", container(), container("stays")))
    before = agent.eye.pod_table("no-image")
    agent.write(pod("no-image", container(image=MISSING_IMAGE, imagePullPolicy="IfNotPresent"), container("stays")))

    def cannot_pull() -> bool:
        waiting = container_status(agent.pods()["no-image"]).get("state", {}).get("waiting", {})
        return (
            waiting.get("reason") in {"RegistryUnavailable", "ImagePullBackOff"} and MISSING_IMAGE in waiting["message"]
        )

    agent.until(cannot_pull, "the image is missed")
    rest = {key: lifecycle for key, lifecycle in before.items() if key != ("no-image", "main")}
    assert agent.eye.pod_table("no-image") == rest
    agent.run(pod("no-image", container(), container("stays")))
    now = agent.eye.pod_table("no-image")
    assert rest.items() <= now.items()
    assert now.keys() == before.keys()
    assert now["no-image", "main"] != before["no-image", "main"]


@pytest.mark.slow
def test_an_edit_that_is_not_admitted_leaves_its_pod_alone_also_over_a_restart(agent: Agent) -> None:
    def with_port(port: int) -> Json:
        return container(ports=[{"containerPort": 80, "hostPort": port}])

    agent.run(pod("holder", with_port(18431)), pod("edited", with_port(18432)))
    before = [agent.eye.pod_table(name) for name in ("holder", "edited")]
    agent.write(pod("edited", with_port(18431)))

    def refusals() -> int:
        return sum(e.get("count", 1) for e in agent.events("edited") if "update refused" in e["message"])

    agent.until(lambda: refusals() == 1, "it is told")
    agent.restart()
    agent.until(lambda: refusals() > 0, "the edit is refused again")
    agent.until_ready(["holder", "edited"])
    assert [agent.eye.pod_table(name) for name in ("holder", "edited")] == before
    agent.remove("holder", "edited")
    agent.until_gone(["holder", "edited"])
