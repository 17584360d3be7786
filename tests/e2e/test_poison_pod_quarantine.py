"""A pod of which its worker hangs or dies, whatever is done for it: nobody else feels it for long, and it can always be
deleted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import pytest

from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from supervisor.pods.crash_attribution import CRASH_THRESHOLD
from tests.e2e.agent import Agent, Json, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.e2e.poisoned_agent import DIE, HANG, PROBE, poison
from tests.support.variants import often

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

CANARY: Final = "canary"
LONGEST_GAP_S: Final = 10.0
"""Between probes of a second, on a machine that has a lot else to do."""
DELETED_DEADLINE_S: Final = 90.0


def canary() -> Json:
    """Writes down when it was probed, each second."""
    probe = {"exec": {"command": ["sh", "-c", "read up idle < /proc/uptime; echo $up >> /probed"]}, "periodSeconds": 1}
    return pod(CANARY, container(readinessProbe=probe))


def annotated(name: str, annotations: Mapping[str, str]) -> Json:
    made = pod(name)
    made["metadata"]["annotations"] = dict(annotations)
    return made


def probed(name: str, how: str) -> Json:
    probe = {"exec": {"command": [*PROBE, how]}, "periodSeconds": 1}
    return pod(name, container(readinessProbe=probe))


def gaps_s(agent: Agent, since: int) -> list[float]:
    """Between the canary's probes, from the n-th on."""
    times = [float(line) for line in agent.inside(CANARY, "cat /probed").split()]
    return [later - before for before, later in pairwise(times[since:])]


def probes(agent: Agent) -> int:
    return len(agent.inside(CANARY, "cat /probed").split())


def is_isolated(agent: Agent, name: str) -> bool:
    return any(event["reason"] == SYNC_CRASH_LOOP_BACK_OFF.reason for event in agent.events(name))


def quarantine_deaths(agent: Agent) -> int:
    deaths: int = agent.workers().get("quarantine", {}).get("deaths", 0)
    return deaths


@pytest.fixture
def poisoned(new_agent: NewAgent) -> Agent:
    """An agent with one shard, in which the canary is; more deaths than it takes to find one pod end it."""
    agent = new_agent(workers={"count": 1, "maxDeaths": CRASH_THRESHOLD - 1})
    agent.program = (sys.executable, "-m", "tests.e2e.poisoned_agent")
    agent.start()
    agent.run(canary())
    return agent


POISON: Final = {
    "probe-hangs": probed("poison", HANG),
    "probe-kills": probed("poison", DIE),
    "sync-hangs": annotated("poison", poison("sync", HANG)),
    "sync-kills": annotated("poison", poison("sync", DIE)),
}


@pytest.mark.parametrize("manifest", often(POISON, "probe-kills"))
def test_nobody_else_feels_a_quarantined_pod_and_its_manifest_can_be_deleted(poisoned: Agent, manifest: Json) -> None:
    agent = poisoned
    agent.write(manifest)
    agent.until(lambda: is_isolated(agent, "poison"), "it is found")
    agent.until(lambda: agent.workers()["pods-0"]["state"] == "Running", "the shard is there again")
    was = probes(agent)
    agent.until(lambda: probes(agent) > was, "the canary is probed")
    before, since = agent.workers()["pods-0"], probes(agent) + 1
    assert before["deaths"] == CRASH_THRESHOLD
    agent.until(lambda: quarantine_deaths(agent) > 0, "it has killed in quarantine")
    agent.assert_works(pod("meanwhile"))
    agent.remove("poison")
    agent.until(lambda: "poison" not in agent.pods(), "it is deleted", DELETED_DEADLINE_S)
    agent.until(lambda: "quarantine" not in agent.workers(), "nobody is in quarantine any more")
    after = agent.workers()["pods-0"]
    assert (after["pid"], after["deaths"]) == (before["pid"], CRASH_THRESHOLD)
    longest_s = max(gaps_s(agent, since))
    print(f"longest gap between the canary's probes: {longest_s:.2f} s")
    assert longest_s < LONGEST_GAP_S
    assert {restart_count(found) for found in agent.pods().values()} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("how", [HANG, DIE])
def test_a_pod_is_deleted_whose_termination_kills_its_worker(poisoned: Agent, how: str) -> None:
    agent = poisoned
    manifest = annotated("poison", poison("terminating", how))
    agent.run(manifest)
    agent.remove("poison")
    agent.until(lambda: is_isolated(agent, "poison"), "it is found")
    agent.until(lambda: "poison" not in agent.pods(), "it is deleted", DELETED_DEADLINE_S)
    assert not any(key[0] == "poison" for key in agent.eye.pod_table())
    assert agent.workers()["pods-0"]["deaths"] == CRASH_THRESHOLD
    agent.until(lambda: "quarantine" not in agent.workers(), "nobody is in quarantine any more")


@pytest.mark.slow
def test_another_manifest_is_tried_at_once(poisoned: Agent) -> None:
    agent = poisoned
    agent.write(POISON["sync-kills"])
    agent.until(lambda: is_isolated(agent, "poison"), "it is found")
    agent.write(pod("poison"))
    agent.until_ready(["poison"])
    assert agent.workers()["quarantine"]["pods"] == 1, "it stays for a while"
    assert agent.workers()["pods-0"]["deaths"] == CRASH_THRESHOLD
