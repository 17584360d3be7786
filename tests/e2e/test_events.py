"""The history of events: counted, bounded, and still there after kill -9 of the agent."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod, pods

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

FILE = "state/events.jsonl"
TTL_S = 8
MAX_EVENTS = 5


def event(agent: Agent, name: str, reason: str) -> Json:
    """The one of that reason; empty before it happened."""
    return next((e for e in agent.events(name) if e["reason"] == reason), {})


def count_on_disk(file: Path, name: str) -> int:
    """How often an event has happened, as the file has it."""
    lines = file.read_text().splitlines()[1:] if file.exists() else []
    return max((e["count"] for e in map(json.loads, lines) if e["metadata"]["name"] == name), default=0)


def test_counts_go_on_after_the_agent_was_killed(new_agent: NewAgent) -> None:
    agent = new_agent(crashLoopBackOff={"maxContainerRestartPeriod": "1s"})
    agent.start()
    agent.write(pod("crashes", container(script="exit 3")))
    agent.until(lambda: event(agent, "crashes", "Started").get("count", 0) >= 3, "it was started three times")
    before = event(agent, "crashes", "Started")
    file, name = agent.directory / FILE, before["metadata"]["name"]
    agent.until(lambda: count_on_disk(file, name) >= before["count"], "that is on disk")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    version = int(agent.get("/api/v1/events")["metadata"]["resourceVersion"])
    agent.kill_and_recover("master")
    after = event(agent, "crashes", "Started")
    assert after["metadata"]["name"] == name
    assert after["firstTimestamp"] == before["firstTimestamp"]
    assert after["count"] >= before["count"]
    assert int(after["metadata"]["resourceVersion"]) > version
    agent.until(lambda: event(agent, "crashes", "Started")["count"] > after["count"], "it goes on counting")
    (row,) = (line for line in agent.cli("events").out.splitlines() if " Started " in line)
    assert "(x" in row
    assert " over " in row


@pytest.mark.slow
def test_a_pod_that_comes_again_is_described_without_what_was_before(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("again"))
    agent.remove("again")
    agent.until_gone(["again"])
    agent.run(pod("again"))

    def described() -> str:
        return agent.describe("again").partition("Events:")[2]

    def is_only_the_new_one(events: str) -> bool:
        return "Killing" not in events and re.search(r"Started +\S+ +rootlet", events) is not None

    agent.until(lambda: is_only_the_new_one(described()), "no other pod's events are shown, and none is counted on")
    started = [e for e in agent.events("again") if e["reason"] == "Started"]
    assert [e["count"] for e in started] == [1, 1], "the history has both"
    file = agent.directory / FILE
    agent.until(lambda: all(count_on_disk(file, e["metadata"]["name"]) for e in started), "both are on disk")
    agent.kill_and_recover("master")
    assert is_only_the_new_one(described()), "it is the same pod after a restart"
    agent.remove("again")


@pytest.mark.slow
def test_the_history_is_bounded_in_number_and_in_time(new_agent: NewAgent) -> None:
    agent = new_agent(eventHistory={"maxEvents": MAX_EVENTS, "ttl": f"{TTL_S}s"})
    agent.start()
    agent.run(*pods("bounded", 3).values())
    assert 0 < len(agent.events()) <= MAX_EVENTS
    agent.until(lambda: agent.events() == [], "old events go without new ones")
    agent.restart()
    assert [event for event in agent.events() if event["involvedObject"]["kind"] != "Node"] == []
