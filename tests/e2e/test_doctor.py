"""`rootlet doctor` on a real host, and what the agent says of it when it starts."""

from __future__ import annotations

import json

import pytest

from supervisor.admission.cgroups import delegated_controllers
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def findings(agent: Agent) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and the messages by level."""
    done = agent.cli("doctor", "--config", str(agent.config), "-o", "json")
    by_level: dict[str, list[str]] = {"ok": [], "warning": [], "failed": []}
    for finding in json.loads(done.out)["findings"]:
        by_level[finding["level"]].append(f"{finding['subject']}: {finding['message']}")
    return done.code, by_level


def test_this_host_can_run_pods_and_bad_manifests_are_named(new_agent: NewAgent) -> None:
    """The agent need not run for it."""
    agent = new_agent()
    agent.write(pod("good"))
    code, found = findings(agent)
    assert (code, found["failed"]) == (0, []), "the tests run here"
    assert any(text.startswith("podman: version ") and text.endswith(", rootless") for text in found["ok"])
    agent.write(pod("bad", container(image="localhost/nobody-has-made-this:1")))
    agent.write_file("broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {conainers: []}\n")
    code, found = findings(agent)
    assert code == 1
    image = "pod default/bad: image localhost/nobody-has-made-this:1 of main is not there, and imagePullPolicy is Never"
    assert image in found["failed"]
    assert any("broken.yaml: document 1: spec.conainers: unknown field" in text for text in found["failed"])


def test_what_the_host_lacks_is_told_when_the_agent_starts(new_agent: NewAgent) -> None:
    agent = new_agent(maxPods=10_000)  # Podman has locks for some 2000 containers
    _, found = findings(agent)
    lacking = [text for text in found["warning"] if text.startswith(("cgroups: ", "inotify: ", "locks: "))]
    assert lacking
    agent.start()
    agent.until(lambda: any(event["reason"] == "Preflight" for event in agent.events()), "it is told")
    told = [event["message"] for event in agent.events() if event["reason"] == "Preflight"]
    assert all(any(message.startswith(text) for message in told) for text in lacking)


def test_the_controllers_that_are_delegated_are_named(new_agent: NewAgent) -> None:
    _, found = findings(new_agent())
    controllers = delegated_controllers() or frozenset()
    lacking = {"cpu", "memory", "pids"} - controllers
    told = {text.split()[2] for text in found["warning"] if text.startswith("cgroups: controller ")}
    assert told == lacking
    assert any(text.startswith("cgroups: v2 with ") for text in found["ok"]) == (not lacking)
