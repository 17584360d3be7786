"""Ephemeral containers: added to a pod that runs, by an edit of its manifest."""

from __future__ import annotations

from typing import Final

import pytest

from tests.e2e.agent import Agent, Json, container_status, is_ready
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

TARGET: Final = "exec sleep 4242"
LOOK: Final = "tr '\\0' ' ' < /proc/1/cmdline; echo; " + STAY


def ephemeral(name: str, script: str, target: str = "") -> Json:
    found = container(name, script)
    return {**found, "targetContainerName": target} if target else found


def state(agent: Agent, pod_name: str, name: str) -> Json:
    """Status of an ephemeral container; empty before there is one."""
    statuses = agent.pods()[pod_name]["status"].get("ephemeralContainerStatuses", ())
    found: Json = next((s["state"] for s in statuses if s["name"] == name), {})
    return found


def test_it_is_added_to_a_pod_that_runs(agent: Agent) -> None:
    parts = (container(script=TARGET), container("other"))
    agent.run(pod("look", *parts))
    before = agent.eye.pod_table("look")
    agent.write(pod("look", *parts, ephemeralContainers=[ephemeral("debug", LOOK, "main")]))
    agent.until(lambda: "running" in state(agent, "look", "debug"), "debug runs")
    agent.until(lambda: "sleep 4242" in agent.cli("logs", "look", "-c", "debug").out, "debug sees its target")
    after = agent.eye.pod_table("look")
    assert after.keys() - before.keys() == {("look", "debug")}
    assert {key: lifecycle for key, lifecycle in after.items() if key in before} == before
    assert is_ready(agent.pods()["look"])
    assert [e["involvedObject"]["fieldPath"] for e in agent.events("look") if "debug" in str(e["involvedObject"])] == [
        "spec.ephemeralContainers{debug}"
    ] * 3


def test_it_is_never_started_again(agent: Agent) -> None:
    parts = (container(),)
    agent.run(pod("once", *parts))
    agent.write(pod("once", *parts, ephemeralContainers=[ephemeral("debug", "echo seen; exit 5")]))
    agent.until(lambda: "terminated" in state(agent, "once", "debug"), "debug has ended")
    agent.run(pod("other", container()))  # Syncs go on meanwhile.
    agent.write(pod("once", *parts, labels={"a": "b"}, ephemeralContainers=[ephemeral("debug", "echo seen; exit 5")]))
    agent.until(lambda: agent.pods()["once"]["metadata"].get("labels") == {"a": "b"}, "the edit was taken")
    agent.until(lambda: is_ready(agent.pods()["once"]), "the pod is Ready")
    (debug,) = (c for c in agent.eye.containers("once") if c.name == "debug")
    assert (debug.attempt, debug.exit_code, debug.state) == (0, 5, "exited")
    assert state(agent, "once", "debug")["terminated"]["exitCode"] == 5
    agent.restart()
    agent.until_ready(["once"])
    assert [c.id for c in agent.eye.containers("once") if c.name == "debug"] == [debug.id]


def test_it_may_stand_in_the_manifest_from_the_beginning(agent: Agent) -> None:
    agent.write(pod("early", container(script=TARGET), ephemeralContainers=[ephemeral("debug", LOOK, "main")]))
    agent.until(lambda: "early" in agent.pods() and "running" in state(agent, "early", "debug"), "debug runs")
    agent.until(lambda: "sleep 4242" in agent.cli("logs", "early", "-c", "debug").out, "debug sees its target")


def test_a_target_that_does_not_run_is_waited_for(agent: Agent) -> None:
    parts = (container(script="exit 0"), container("other"))
    agent.write(pod("ended", *parts, restartPolicy="Never"))
    agent.until(lambda: "ended" in agent.pods() and has_ended(agent, "ended"), "the target has ended")
    agent.write(pod("ended", *parts, restartPolicy="Never", ephemeralContainers=[ephemeral("debug", LOOK, "main")]))
    waiting = {"reason": "CreateContainerConfigError", "message": "target container main is not running"}
    agent.until(lambda: state(agent, "ended", "debug").get("waiting") == waiting, "debug waits")
    failed = [e for e in agent.events("ended") if e["reason"] == "Failed"]
    assert {e["message"] for e in failed} == {"Error: target container main is not running"}
    assert {c.name for c in agent.eye.containers("ended")} == {"main", "other"}


def has_ended(agent: Agent, name: str) -> bool:
    return "terminated" in container_status(agent.pods()[name]).get("state", {})


def test_a_target_that_no_manifest_has_is_refused(agent: Agent) -> None:
    before = set(agent.pods())
    manifest = pod("refused", container(), ephemeralContainers=[ephemeral("debug", LOOK, "gone")])
    agent.write(manifest)
    agent.until(lambda: "targetContainerName" in agent.log_text(), "the refusal is told")
    assert set(agent.pods()) == before
