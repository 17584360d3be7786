"""Nodes that run short of something, for the end-to-end tests: thresholds relative to what this machine has now, and a
crowd of pods that must not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ipc.eviction.signals import Signal
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import pods
from workers.eviction.node_signals import Places, observe_node

MIB: Final = 1024 * 1024
INNOCENT: Final = 10
EVICTED_S: Final = 90.0
"""A round every ten seconds, a measurement, and a machine that has other work."""


def available(signal: Signal, directory: str = "") -> int:
    """Amount that the agent would observe now."""
    return observe_node({signal}, Places(directories=(directory,) if directory else ()), 0.0).signals[signal].available


class Crowd:
    """Ten pods that want nothing but to be left alone, and what is known of them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._pods = pods("innocent", INNOCENT)
        agent.run(*self._pods.values())
        self._before = self._containers()

    def _containers(self) -> dict[str, tuple[str, ...]]:
        """By pod: ids of the containers that run."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self._pods:
            statuses = self._agent.pods()[name]["status"]["containerStatuses"]
            found[name] = tuple(f"{s['containerID']} {s['restartCount']} {s['ready']}" for s in statuses)
        return found

    def assert_undisturbed(self) -> None:
        assert self._containers() == self._before
        for name in self._pods:
            assert not {"Evicted", "Killing", "Unhealthy"} & self._agent.reasons(name).keys(), name


def until_evicted(agent: Agent, name: str) -> Json:
    """Status of the evicted pod."""

    def failed() -> bool:
        return bool(agent.pods().get(name, {}).get("status", {}).get("phase") == "Failed")

    agent.until(failed, f"{name} is evicted", EVICTED_S)
    status: Json = agent.pods()[name]["status"]
    assert status["reason"] == "Evicted", status
    return status


def node_condition(agent: Agent, kind: str) -> Json:
    [node] = agent.get("/api/v1/nodes")["items"]
    found: Json = next((c for c in node["status"]["conditions"] if c["type"] == kind), {})
    return found


def assert_told(agent: Agent, name: str, status: Json, resource: str, kind: str) -> None:
    """Status, events and conditions say why."""
    assert status["message"].startswith(f"The node was low on resource: {resource}. Threshold quantity: ")
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]
    [event] = [event for event in agent.events(name) if event["reason"] == "Evicted"]
    assert (event["type"], event["message"]) == ("Warning", status["message"])
    assert event["metadata"]["annotations"]["starved_resource"] == resource
    assert f"Attempting to reclaim {resource}" in agent.messages("e2e", "EvictionThresholdMet")
    # The node's status follows within nodeStatusUpdateFrequency.
    agent.until(lambda: node_condition(agent, kind).get("status") == "True", f"the node has {kind}")
    agent.until(lambda: not agent.eye.containers(name), "its containers are gone")


def disk_agent(new_agent: NewAgent, directory: Path, threshold: dict[str, str], **more: Any) -> Agent:
    agent = new_agent(
        stateDir=str(directory / "state"),
        podLogsDir=str(directory / "logs"),
        evictionHard=threshold,
        evictionPressureTransitionPeriod="5s",
        **more,
    )
    agent.start()
    return agent


def imagefs_agent(new_agent: NewAgent, store: Path, state: Path, **more: Any) -> Agent:
    free = available(Signal.NODEFS_AVAILABLE, str(store))
    return disk_agent(new_agent, state, {Signal.IMAGEFS_AVAILABLE.value: str(free - 128 * MIB)}, **more)


def assert_told_of_disk(agent: Agent, status: Json, resource: str) -> None:
    assert status["message"].startswith(f"The node was low on resource: {resource}. ")
    assert f"Attempting to reclaim {resource}" in agent.messages("e2e", "EvictionThresholdMet")
