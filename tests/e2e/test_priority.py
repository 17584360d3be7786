"""Priority of pods: classes in documents, and critical pods that others give way to."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from ipc.k8s.api.quantity import parse_quantity
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**api, "metadata": {"name": name}, "value": value, **fields}


def test_pods_have_the_priority_of_their_class(agent: Agent) -> None:
    agent.run(pod("prio-gold", priorityClassName="gold"), pod("prio-number", priority=7))
    assert agent.messages("prio-gold", "UnsupportedField") == [
        "spec.priorityClassName: no PriorityClass with name gold was found: its priority is 0"
    ]
    started = agent.pods()["prio-gold"]["status"]["containerStatuses"][0]["containerID"]
    agent.write(priority_class("gold", 1000, description="more than others"))

    def has_priority() -> bool:
        return bool(agent.pods()["prio-gold"]["spec"].get("priority") == 1000)

    agent.until(has_priority, "the class counts for the pod that names it")
    assert agent.pods()["prio-gold"]["status"]["containerStatuses"][0]["containerID"] == started
    assert "Priority:             1000\nPriority Class Name:  gold" in agent.describe("prio-gold")
    assert agent.pods()["prio-number"]["spec"]["priority"] == 7
    assert agent.messages("prio-number", "UnsupportedField") == []
    table = [line.split() for line in agent.cli("get", "priorityclasses").out.splitlines()]
    assert table[0] == ["NAME", "VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY"]
    assert [row[:3] for row in table[1:]] == [["gold", "1000", "false"]]
    assert json.loads(agent.cli("get", "pc", "gold", "-o", "json").out)["kind"] == "PriorityClass"
    assert "Value:             1000" in agent.cli("describe", "priorityclass", "gold").out


def test_classes_are_applied_and_deleted(agent: Agent) -> None:
    applied = json.dumps(priority_class("tin", -5))
    assert agent.cli("apply", "-f", "-", stdin=applied).out == "priorityclass/tin created\n"
    assert agent.cli("apply", "-f", "-", stdin=applied).out == "priorityclass/tin unchanged\n"
    refused = agent.cli("apply", "-f", "-", stdin=json.dumps(priority_class("tin", -6)))
    assert "value: PriorityClass tin: Forbidden: may not be changed in an update" in refused.err
    agent.restart()
    assert agent.cli("get", "priorityclass", "tin", "-o", "name").out == "priorityclass.scheduling.k8s.io/tin\n"
    assert agent.cli("delete", "priorityclass", "tin").out == 'priorityclass "tin" deleted\n'
    assert agent.cli("get", "priorityclass", "tin").code == 1


def test_others_give_way_to_a_critical_pod_and_it_starts_when_they_have_ended(new_agent: NewAgent) -> None:
    """The pod with less to lose goes, for good: also over a restart of the agent."""
    agent = new_agent(maxPods=2)
    agent.start()
    asks = container(resources={"requests": {"cpu": "10m"}})
    agent.run(pod("burstable", asks), pod("best-effort"))
    agent.run(pod("critical", priorityClassName="system-node-critical"))
    assert agent.reasons("best-effort")["Preempting"] == "Preempted in order to admit critical pod"
    status = agent.pods()["best-effort"]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Preempting")
    target = next(each for each in status["conditions"] if each["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert agent.row("burstable")[2] == "Running"
    agent.restart()
    agent.until_running(["burstable", "critical"])
    assert agent.pods()["best-effort"]["status"]["reason"] == "Preempting"
    agent.remove("best-effort")
    agent.write(pod("late"))
    agent.until(lambda: "OutOfpods" in agent.reasons("late"), "nobody gives way to a pod that is not critical")


MOMENTS: Final[Mapping[str, Callable[[Agent], bool]]] = {
    "a pod was chosen": lambda agent: "Preempting" in agent.reasons("gives-way"),
    "it is stopping": lambda agent: "stopping" in agent.output("gives-way"),
    "it has stopped": lambda agent: not agent.eye.running("gives-way"),
    "the critical pod is begun": lambda agent: bool(agent.eye.containers("critical", infra=True)),
}
"""Steps of a preemption, as they show from outside."""


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "victim"), list(itertools.product(MOMENTS, ("master", "pods-0", "node"))))
def test_whoever_dies_while_a_pod_is_preempted_it_comes_to_the_same_end(
    new_agent: NewAgent, moment: str, victim: str
) -> None:
    """The pod that was chosen goes, for good, the critical one runs, and the third notices nothing."""
    agent = new_agent(maxPods=2, workers={"count": 1})  # pods-0 has every pod
    agent.start()
    asks = container(resources={"requests": {"cpu": "10m"}})
    slow = container(script="trap 'echo stopping; sleep 2; exit 0' TERM; while true; do sleep 0.1; done")
    agent.run(pod("stays", asks), pod("gives-way", slow))
    before = agent.eye.pod_table("stays")
    agent.write(pod("critical", priorityClassName="system-node-critical"))
    agent.kill_and_recover(victim, lambda: MOMENTS[moment](agent))
    agent.until_running(["stays", "critical"])

    def has_given_way() -> bool:
        status = agent.pods()["gives-way"]["status"]
        return (status["phase"], status.get("reason")) == ("Failed", "Preempting")

    agent.until(has_given_way, "it is told why it ended")
    assert not agent.eye.running("gives-way")
    assert agent.eye.pod_table("stays") == before
    agent.restart()
    agent.until_running(["stays", "critical"])
    assert agent.pods()["gives-way"]["status"]["reason"] == "Preempting"


@pytest.mark.slow
def test_what_is_reserved_is_no_pods(new_agent: NewAgent) -> None:
    cpus = len(os.sched_getaffinity(0))
    agent = new_agent(systemReserved={"cpu": "100m", "memory": "64Mi"}, evictionHard={"memory.available": "36Mi"})
    agent.start()
    node = agent.get("/api/v1/nodes")["items"][0]["status"]
    assert (node["capacity"]["cpu"], node["allocatable"]["cpu"]) == (str(cpus), f"{cpus * 1000 - 100}m")
    kept = parse_quantity(node["capacity"]["memory"]) - parse_quantity(node["allocatable"]["memory"])
    assert kept == 100 << 20
    described = agent.cli("describe", "node").out
    assert f"cpu:                {cpus * 1000 - 100}m" in described
    agent.write(pod("too-large", container(resources={"requests": {"cpu": str(cpus)}})))
    agent.until(lambda: "OutOfcpu" in agent.reasons("too-large"), "it is not admitted")
