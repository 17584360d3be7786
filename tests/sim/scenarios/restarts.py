"""Restarts of single containers that somebody asks for: its count rises by one, and nothing else changes."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.api_server import PodChanged
from tests.sim.pressure import simple_pod
from tests.sim.world import World

KILLED: Final = 0.4
"""Part of the simulations in which the agent or a worker is killed meanwhile."""
UID: Final = "0000eeee-restarted"
NAMES: Final = ("one", "two")
RESTARTED_S: Final = 60.0
"""Within which the successor is there: a grace period, the agent's and a worker's death, a start."""
AFTERWARDS_S: Final = 20.0
"""How long it is seen that nothing more restarts."""
LASTS_S: Final = 3.0
"""Most restarts are over by then: an agent may be killed at any time of one."""


async def restart_one(world: World) -> None:
    """Somebody has a container restarted: nothing but that happens, whoever dies meanwhile."""
    pod, name = _steady_pod(), world.rng.choice(NAMES)
    await world.replace((), {UID: pod})
    told = world.agent.told
    await world.until(lambda: len(_runs(world.agent.told.get(UID))) == 2, "both containers run")
    before = _runs(told.get(UID))
    if not world.agent.restart_container(pod, name):
        world.trace.broke(f"a restart of {name} is refused, and it runs")
    await world.until(world.agent.is_restart_kept, "the restart is answered")
    if world.rng.random() < KILLED:
        await world.step(world.rng.uniform(0.0, LASTS_S))
        world.kill_agent_alone() if world.rng.random() < 0.5 else world.kill_worker()
    why = "not looked at"

    def is_restarted() -> bool:
        nonlocal why
        world.read_sources()
        why = _wrong_restart(before, _runs(world.agent.told.get(UID)), name)
        return not why

    await world.until(is_restarted, f"only {name} is restarted, once", RESTARTED_S)
    await world.step(AFTERWARDS_S)
    if not is_restarted():
        world.trace.broke(f"after a restart: {why}")
    await world.replace((UID,), {})


def _steady_pod() -> Pod:
    """Two containers that never end."""
    pod = simple_pod(UID)
    (one,) = pod.spec.containers
    two = msgspec.structs.replace(one, name=NAMES[1])
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(one, two)))


def _runs(told: PodChanged | None) -> dict[str, tuple[int, str]]:
    """Restart count and id of each container that is told to run."""
    statuses = told.status.container_statuses if told is not None else ()
    return {s.name: (s.restart_count, s.container_id) for s in statuses if s.state.running is not None}


def _wrong_restart(before: dict[str, tuple[int, str]], now: dict[str, tuple[int, str]], name: str) -> str:
    """Words for what is not as after one restart of that container; empty when all is."""
    others = {other: ran for other, ran in before.items() if other != name}
    if {other: ran for other, ran in now.items() if other != name} != others:
        return f"others than {name} were touched: {others} before, {now} now"
    (old_count, old_id), (count, id) = before[name], now.get(name, (-1, ""))
    return "" if count == old_count + 1 and id != old_id else f"{name} was {before[name]} and is {now.get(name)}"
