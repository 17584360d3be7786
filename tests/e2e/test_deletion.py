"""How pods go: within their grace period, not before its end, and sooner when somebody says so."""

from __future__ import annotations

import json

import pytest

from ipc.host.clock import monotonic
from tests.e2e.agent import Agent
from tests.e2e.manifests import IGNORE_TERM, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def test_a_removed_file_takes_its_pod_along(agent: Agent) -> None:
    agent.run(pod("goes"), pod("remains"))
    before = agent.eye.pod_table("remains")
    agent.remove("goes")
    agent.until_gone(["goes"])
    assert agent.eye.pod_table("remains") == before


def test_who_ignores_sigterm_is_killed_after_the_grace_period_and_not_before(agent: Agent) -> None:
    grace_s = 6
    agent.run(pod("stubborn", container(script=IGNORE_TERM), terminationGracePeriodSeconds=grace_s))
    began = monotonic()
    agent.remove("stubborn")
    agent.until(lambda: not agent.eye.running("stubborn"), "it is dead")
    took_s = monotonic() - began
    assert took_s >= grace_s - 0.5
    agent.until_gone(["stubborn"])


def test_a_shorter_grace_period_interrupts_a_longer_one(agent: Agent) -> None:
    manifest = pod("slow", container(script=IGNORE_TERM), terminationGracePeriodSeconds=600)
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(manifest)).code == 0
    agent.until_ready(["slow"])
    assert agent.cli("delete", "pod", "slow", "--no-wait").code == 0
    agent.until(lambda: "deletionTimestamp" in agent.pods()["slow"]["metadata"], "it is going down")
    assert ("slow", "main") in agent.eye.running("slow")
    again = agent.cli("delete", "pod", "slow", "--grace-period=1", "--timeout=60s")
    assert again.code == 0, again
    agent.until_gone(["slow"])


def test_a_pod_that_is_wanted_again_while_it_goes_down_comes_back_as_another_one(agent: Agent) -> None:
    manifest = pod("again", container(script=IGNORE_TERM), terminationGracePeriodSeconds=4)
    agent.run(manifest)
    first = agent.eye.container("again", "main")
    agent.remove("again")
    agent.until(lambda: "deletionTimestamp" in agent.pods()["again"]["metadata"], "it is going down")
    agent.write(manifest)

    def another_runs() -> bool:
        runs = agent.eye.running("again").get(("again", "main"))
        return runs is not None and runs.id != first.id

    agent.until(another_runs, "another one runs")
    agent.until_ready(["again"])
    assert len(agent.eye.containers("again", infra=True)) == 2, "nothing is left of the first"


def test_an_orphan_can_be_hurried_by_its_name(agent: Agent) -> None:
    """Nobody states it and nobody remembers it; its labels have its name and its grace period."""
    agent.run(pod("orphan", container(script=IGNORE_TERM), terminationGracePeriodSeconds=600))
    agent.stop()
    agent.remove("orphan")
    (agent.directory / "state" / "desired.json").unlink()
    agent.start()
    agent.until(lambda: "removing default/orphan" in agent.log_text(), "it is going down", 60)
    assert ("orphan", "main") in agent.eye.running("orphan")
    hurried = agent.cli("delete", "pod", "orphan", "--grace-period=1")
    assert hurried.code == 0, hurried
    agent.until(lambda: not agent.eye.containers("orphan", infra=True), "nothing is left of it", 30)
