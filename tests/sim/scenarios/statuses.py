"""Statuses that cannot be generated, and answers that come late, on a quiet host."""

from __future__ import annotations

from typing import Final

from ipc.k8s.api.v1.status import ContainerStatus
from ipc.link.messages.api_server import PodChanged
from tests.sim.faults import ERRORS, RETRIED_S, Place
from tests.sim.runtime import uid_of
from tests.sim.watch import every_status
from tests.sim.world import World

UNTOLD_S: Final = 5.0
"""How long a status cannot be generated while a container of its pod ends: until that was seen and acted on."""
LATE_S: Final = 5.0
"""Within which a pod worker has died as it answered, and its successor works for the same pod."""


async def misreport(world: World) -> None:
    """A status cannot be generated while a container of its pod ends: it is told soon after it can be again."""
    if (container := world.any_running()) is None:
        return
    uid = uid_of(container)
    world.faults.begin(Place.STATUS, uid, world.rng.choice(ERRORS))
    world.podman.exit(container.id, 1)
    await world.step(UNTOLD_S)
    world.faults.end(Place.STATUS, uid)
    await world.step(RETRIED_S)
    told = world.agent.told.get(uid)
    if told is not None and any(c.container_id.endswith(container.id) for c in _said_to_run(told)):
        world.trace.broke(f"{RETRIED_S:g} s after a status could be told again {container.name} is said to run")


async def answer_late(world: World) -> None:
    """A pod worker dies as it answers, and its answer comes when its successor works for the same pod."""
    if (container := world.any_running()) is None:
        return
    world.agent.answers_late = uid_of(container)
    world.podman.exit(container.id, 1)
    await world.step(LATE_S)
    world.agent.answers_late = ""


def _said_to_run(told: PodChanged) -> list[ContainerStatus]:
    return [status for status in every_status(told) if status.state.running is not None]
