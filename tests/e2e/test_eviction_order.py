"""Several pods take what the node runs short of: who goes, in which order, when, and who is let in meanwhile."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from ipc.k8s.eviction.signals import Signal
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.innocents import Crowd
from tests.e2e.manifests import IGNORE_TERM, container, pod
from tests.e2e.short_node import (
    MIB,
    TEST_S,
    available,
    disk_agent,
    evicted,
    follow,
    has_condition,
    hog,
    limit_memory,
    memory_taken,
    memory_told,
    of_condition,
    of_eviction,
    tell,
    until_relieved,
    with_volume,
    writes,
)

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(TEST_S)]

NODEFS: Final = Signal.NODEFS_AVAILABLE.value
DISK: Final = "ephemeral-storage"
LITTLE: Final = {DISK: "16Mi"}
"""Request of the innocents for disk: their logs are within it."""
PAUSE_S: Final = 10.0
"""Between the end of one pod that goes for a disk and the next one (`supervisor/node/node_pressure.py`)."""
SOFT_GRACE_S: Final = 20.0
POD_GRACE_S: Final = 4
ROUND_S: Final = 10.0
LATE_S: Final = 2.0
"""The node's status follows within a second, and is asked for now and then."""


def until_written(agent: Agent, *names: str) -> None:
    for name in names:
        agent.until(lambda name=name: "done" in agent.output(name), f"{name} has written")  # type: ignore[misc]


def asks(resource: str, amount: str) -> Json:
    """Field of a container."""
    return {"resources": {"requests": {resource: amount}}}


def begin_eviction(agent: Agent, threshold: int, **settings: object) -> None:
    """From now on, and not before everybody has what they want. A soft threshold: what pods may request does not become
    less by it, as it does by a hard one."""
    agent.configure({"evictionSoft": {NODEFS: str(threshold)}, "evictionSoftGracePeriod": {NODEFS: "1s"}, **settings})
    agent.restart()


@pytest.mark.slow
def test_of_many_fillers_one_goes_after_the_other_by_request_priority_and_use(
    new_agent: NewAgent, in_memory: Path
) -> None:
    """Above the request first, then by priority; one within its request is the last, whatever its priority; a critical
    one stays, and nobody goes after there is enough."""
    agent = disk_agent(new_agent, in_memory, {})
    crowd = Crowd(agent, requests=LITTLE)
    threshold = available(Signal.NODEFS_AVAILABLE, str(in_memory)) - 50 * MIB
    agent.run(
        with_volume("within", writes(48), priority=-20, fields=asks(DISK, "64Mi")),
        with_volume("critical", writes(32), priorityClassName="system-node-critical"),
        with_volume("plain", writes(32)),
        with_volume("low", writes(24), priority=-10),
    )
    until_written(agent, "within", "critical", "plain", "low")
    order = ("low", "plain", "within")
    begin_eviction(agent, threshold)
    steps = {"short": lambda: True, **of_condition(agent, "DiskPressure")}
    for name in order:
        steps |= of_eviction(agent, name)
    seen = follow(agent, steps, 120)
    until_relieved(agent, "DiskPressure")
    assert evicted(agent) == list(order)
    for first, second in itertools.pairwise(order):
        assert seen[f"{second} evicted"] - seen[f"{first} gone"] > PAUSE_S - LATE_S, "one at a time"
    assert agent.row("critical")[1:4] == ["1/1", "Running", "0"]
    crowd.assert_undisturbed()
    tell("fillers of different priority", seen, crowd, ", ".join(order))


@pytest.mark.slow
def test_a_larger_hog_within_its_request_outlives_one_that_takes_more_than_it_asked_for(new_agent: NewAgent) -> None:
    """Somebody who is no pod takes the memory, and goes as soon as the first pod does: nobody else has to."""
    agent = new_agent(evictionPressureTransitionPeriod="5s")
    agent.start()
    crowd = Crowd(agent)
    within, over = asks("memory", "768Mi"), asks("memory", "64Mi")
    # A pod that stops within a second leaves the other one time to let go.
    agent.run(pod("within", hog(512 * MIB, **within)), pod("over", hog(256 * MIB, then=IGNORE_TERM, **over)))
    room = limit_memory(agent)
    with memory_told(agent), memory_taken(room.left + room.gap // 2) as let_go:
        steps = of_eviction(agent, "over")
        follow(agent, {"short": lambda: room.is_short, **of_condition(agent, "MemoryPressure")})
        is_told, is_gone = steps.values()
        agent.until(lambda: is_told() or evicted(agent) != [], "somebody goes", 60, 0.02)
        let_go()
        assert evicted(agent) == ["over"]
        agent.until(is_gone, "nothing is left of it")
        until_relieved(agent, "MemoryPressure")
        assert evicted(agent) == ["over"]
        assert agent.row("within")[1:4] == ["1/1", "Running", "0"]
        crowd.assert_undisturbed()


@pytest.mark.slow
def test_a_soft_threshold_waits_for_its_grace_and_gives_pods_time_to_stop(new_agent: NewAgent, in_memory: Path) -> None:
    """First the condition, after the grace the pod, with as much time as evictionMaxPodGracePeriod allows."""
    threshold = available(Signal.NODEFS_AVAILABLE, str(in_memory)) - 24 * MIB
    agent = disk_agent(
        new_agent,
        in_memory,
        {},
        evictionSoft={NODEFS: str(threshold)},
        evictionSoftGracePeriod={NODEFS: f"{SOFT_GRACE_S:.0f}s"},
        evictionMaxPodGracePeriod=POD_GRACE_S,
    )
    crowd = Crowd(agent)
    stops = "trap 'while true; do echo stopping; sleep 0.2; done' TERM"
    slow = with_volume(
        "filler", f"{stops}; {writes(48)}; while true; do sleep 0.2; done", terminationGracePeriodSeconds=60
    )
    agent.write(slow)
    steps = {
        "short": lambda: available(Signal.NODEFS_AVAILABLE, str(in_memory)) < threshold,
        **of_condition(agent, "DiskPressure"),
        **of_eviction(agent, "filler"),
    }
    seen = follow(agent, steps)
    waited = seen["filler evicted"] - seen["condition"]
    assert SOFT_GRACE_S - LATE_S <= waited < SOFT_GRACE_S + 2 * ROUND_S
    assert POD_GRACE_S - 1 <= seconds_of_stopping(agent, "filler") < 2 * POD_GRACE_S
    assert evicted(agent) == ["filler"]
    crowd.assert_undisturbed()
    tell("emptyDir, soft threshold", seen, crowd, "filler")


def seconds_of_stopping(agent: Agent, name: str) -> float:
    """Between the first and the last word that it said of it."""
    [file] = Path(agent.settings["podLogsDir"]).glob(f"*_{name}_*/main/*.log")
    lines = (line.split(" ", 3) for line in file.read_text().splitlines())
    times = [datetime.fromisoformat(at).timestamp() for at, _, _, word in lines if word == "stopping"]
    return times[-1] - times[0]


@pytest.mark.slow
def test_a_minimum_reclaim_takes_a_second_pod(new_agent: NewAgent, in_memory: Path) -> None:
    """After the larger one nothing is short; the smaller one goes for what is to be reclaimed beyond that."""
    agent = disk_agent(new_agent, in_memory, {})
    crowd = Crowd(agent, requests=LITTLE)
    threshold = available(Signal.NODEFS_AVAILABLE, str(in_memory)) - 50 * MIB
    agent.run(with_volume("large", writes(40)), with_volume("small", writes(28)))
    until_written(agent, "large", "small")
    begin_eviction(agent, threshold, evictionMinimumReclaim={NODEFS: str(36 * MIB)})
    follow(agent, of_eviction(agent, "large"))
    agent.until(lambda: available(Signal.NODEFS_AVAILABLE, str(in_memory)) > threshold, "the threshold is met no more")
    assert evicted(agent) == ["large"]
    follow(agent, of_eviction(agent, "small"))
    assert evicted(agent) == ["large", "small"]
    until_relieved(agent, "DiskPressure")
    crowd.assert_undisturbed()


def test_under_memory_pressure_whoever_asks_for_something_or_tolerates_it_is_let_in(new_agent: NewAgent) -> None:
    """A soft threshold that is always met, with an hour's grace: nobody goes."""
    agent = new_agent(
        evictionSoft={"memory.available": "99%"},
        evictionSoftGracePeriod={"memory.available": "1h"},
    )
    agent.start()
    agent.until(lambda: has_condition(agent, "MemoryPressure"), "the node has the condition")
    tolerates = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]
    agent.write(pod("best-effort"))
    agent.run(
        pod("burstable", container(resources={"requests": {"cpu": "10m"}})),
        pod("tolerates", tolerations=tolerates),
        pod("critical", priorityClassName="system-node-critical"),
    )
    agent.until(lambda: "Evicted" in agent.reasons("best-effort"), "it is refused")
    status = agent.pods()["best-effort"]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
    assert evicted(agent) == []
