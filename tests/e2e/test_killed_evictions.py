"""kill -9 of the agent or a worker at any step of an eviction: it comes to the same end, and nobody else goes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import pytest

from ipc.k8s.eviction.signals import Signal
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.innocents import INNOCENT, Crowd
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.short_node import (
    COLLECTS_ALL,
    EVICTED_S,
    MIB,
    TEST_S,
    available,
    directory_in_memory,
    disk_agent,
    evicted,
    has_condition,
    hog,
    imagefs_agent,
    import_image,
    limit_memory,
    memory_told,
    storage_in_memory,
    until_evicted,
    until_relieved,
    with_volume,
    writes,
)
from tests.support.podman_service import image_exists

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(TEST_S)]

VICTIMS: Final = ("master", "pods-0", "node")
ONE_WORKER: Final = {"workers": {"count": 1}}
"""pods-0 has every pod."""
FEW: Final = 5
UNUSED: Final = tuple(f"localhost/rootlet-test-unused-{number}:latest" for number in range(3))


def is_marked(agent: Agent, name: str) -> bool:
    """Whether it is written down that it was evicted."""
    uid = agent.pods()[name]["metadata"]["uid"]
    return bool(list((agent.state / "pods").glob(f"{uid}/evicted")))


MOMENTS: Final[Mapping[str, Callable[[Agent, str, str], bool]]] = {
    "there is pressure": lambda agent, name, condition: has_condition(agent, condition),
    "it is told": lambda agent, name, condition: "Evicted" in agent.reasons(name),
    "it is written down": lambda agent, name, condition: is_marked(agent, name),
    "nothing of it runs": lambda agent, name, condition: not agent.eye.running(name),
    "nothing of it is left": lambda agent, name, condition: not agent.eye.containers(name),
}
"""Steps of an eviction, as they show from outside."""


class Scene(NamedTuple):
    """An agent, and pods that are not to be troubled."""

    agent: Agent
    crowd: Crowd


@pytest.fixture(scope="module")
def scene(new_shared_agent: NewAgent) -> Iterator[Scene]:
    """One agent for all moments: what is evicted each time is another pod."""
    with directory_in_memory() as directory:
        threshold = available(Signal.NODEFS_AVAILABLE, str(directory)) - 64 * MIB
        agent = disk_agent(new_shared_agent, directory, {"nodefs.available": str(threshold)}, **ONE_WORKER)
        yield Scene(agent, crowd_of(agent, INNOCENT))


def crowd_of(agent: Agent, count: int) -> Crowd:
    crowd = Crowd(agent, count)
    crowd.until_remembered()
    return crowd


def kill_while_it_goes(agent: Agent, offender: Json, condition: str, victim: str, moment: str) -> None:
    """The pod goes all the same, for good, also for the agent after that; another one may begin when it is gone."""
    name = offender["metadata"]["name"]
    agent.write(offender)
    agent.until(lambda: bool(agent.eye.running(name)), "it runs")
    agent.kill_and_recover(victim, lambda: MOMENTS[moment](agent, name, condition))
    until_evicted(agent, name)
    agent.until(lambda: not agent.eye.containers(name, infra=True), "its containers are gone", EVICTED_S)
    assert is_marked(agent, name)
    agent.restart()
    until_evicted(agent, name)
    assert not agent.eye.containers(name, infra=True)
    agent.remove(name)
    agent.until_gone([name])
    until_relieved(agent, condition)


@pytest.mark.parametrize(("moment", "victim"), list(itertools.product(MOMENTS, VICTIMS)))
def test_whoever_dies_while_a_pod_is_evicted_for_the_disk(scene: Scene, moment: str, victim: str) -> None:
    name = f"filler-{victim}-{moment.replace(' ', '-')}"
    kill_while_it_goes(scene.agent, with_volume(name, writes(128)), "DiskPressure", victim, moment)
    scene.crowd.assert_undisturbed()


@pytest.mark.parametrize(("moment", "victim"), [("there is pressure", "node"), ("it is told", "master")])
def test_whoever_dies_while_a_pod_is_evicted_for_memory(new_agent: NewAgent, moment: str, victim: str) -> None:
    agent = new_agent(evictionPressureTransitionPeriod="5s", **ONE_WORKER)
    agent.start()
    crowd = crowd_of(agent, FEW)
    room = limit_memory(agent)
    with memory_told(agent):
        kill_while_it_goes(agent, pod("hog", hog(room.left + room.gap)), "MemoryPressure", victim, moment)
        crowd.assert_undisturbed()


@pytest.mark.parametrize(("moment", "victim"), [("nothing of it runs", "pods-0"), ("it is told", "master")])
def test_whoever_dies_while_a_pod_is_evicted_for_pids(new_agent: NewAgent, moment: str, victim: str) -> None:
    agent = new_agent(evictionPressureTransitionPeriod="5s", **ONE_WORKER)
    agent.start()
    crowd = crowd_of(agent, FEW)
    agent.configure({"evictionHard": {"pid.available": str(available(Signal.PID_AVAILABLE) - 800)}})
    agent.restart()
    bomb = pod("bomb", container(script=f"for i in $(seq 1600); do sleep 3600 & done; {STAY}"))
    kill_while_it_goes(agent, bomb, "PIDPressure", victim, moment)
    crowd.assert_undisturbed()


@pytest.mark.parametrize("victim", ["master", "node", "podman"])
def test_whoever_dies_while_images_are_reclaimed(
    monkeypatch: pytest.MonkeyPatch, new_agent: NewAgent, victim: str
) -> None:
    """The rest of them goes after that, and no pod."""
    with directory_in_memory() as state, storage_in_memory(monkeypatch) as store:
        for number, name in enumerate(UNUSED):
            import_image(name, (64 + number) * MIB)  # no two with the same layer
        agent, _ = imagefs_agent(new_agent, store, state, **COLLECTS_ALL, **ONE_WORKER)
        crowd = crowd_of(agent, FEW)
        (store / "of somebody else").write_bytes(bytes(256 * MIB))
        agent.kill_and_recover(victim, lambda: not all(map(image_exists, UNUSED)))
        agent.until(lambda: not any(map(image_exists, UNUSED)), "the unused images are gone", EVICTED_S)
        until_relieved(agent, "DiskPressure")
        assert evicted(agent) == []
        crowd.assert_undisturbed()
        agent.close()
