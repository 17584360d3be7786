"""A ConfigMap that changes on a quiet host."""

from __future__ import annotations

from typing import Final

from ipc.link.messages.pod_worker import WorkType
from tests.sim.frame import SETTLE_S, STEP_S
from tests.sim.objects import stale_objects
from tests.sim.poison import UID as POISON
from tests.sim.world import World

ROTATION_S: Final = 10.0
"""Within which a changed ConfigMap is given to those that refer to it, from the end of the sync that was under way: it
may last as long, when a container takes its time to stop."""


async def rotate(world: World) -> None:
    """A ConfigMap changes while all is quiet: who refers to it is synced with it soon, not when it is due."""
    world.objects.settle()
    world.agent.state(world.desired)
    free_since = dict.fromkeys(world.desired, world.now)
    end_at = world.now + SETTLE_S
    while behind := _behind(world):
        free_since |= dict.fromkeys(world.agent.in_flight, world.now)
        for uid, why in behind.items():
            if world.now > min(free_since[uid] + ROTATION_S, end_at):
                world.trace.broke(f"{ROTATION_S:g} s after a ConfigMap has changed {uid[:8]} is behind: {why}")
        await world.step(STEP_S)


def _behind(world: World) -> dict[str, str]:
    """Pods whose newest sync had other ConfigMaps than there are now, and which."""
    behind = {}
    for uid, pod in world.desired.items():
        newest = world.agent.newest.get(uid)
        if uid == POISON or newest is None or newest.kind is not WorkType.SYNC:
            continue
        pod = world.agent.refused.get(uid, pod)
        if why := "; ".join(stale_objects(pod, world.agent.told.get(uid), newest, world.objects.stated)):
            behind[uid] = why
    return behind
