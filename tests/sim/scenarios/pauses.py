"""Pods that were paused are resumed on a quiet host."""

from __future__ import annotations

from ipc.link.messages.pod_worker import Freeze
from tests.sim.frame import SETTLE_S, STEP_S
from tests.sim.runtime import LATE_EFFECT_S, uid_of
from tests.sim.world import World


async def resume_all(world: World) -> None:
    """A paused pod stays paused, over deaths of the agent too, until somebody resumes it or it goes. Nobody but
    here is left who would resume one whose pause is asked for, or comes late."""
    await world.until(lambda: world.agent.sources_ready, "the agent knows what is wanted", SETTLE_S)
    none_comes_at, end_at = world.now + LATE_EFFECT_S, world.now + SETTLE_S
    while (frozen := _frozen(world)) or world.now < none_comes_at:
        if world.now >= end_at:
            world.trace.broke(f"{SETTLE_S:g} s after everybody was resumed there are paused: {frozen}")
        for uid in (uid for uid in frozen if uid in world.desired):
            world.agent.freeze(world.desired[uid], Freeze.RESUME)
        await world.step(STEP_S)


def _frozen(world: World) -> list[str]:
    """UIDs of pods that are paused, or are to be."""
    paused = {uid_of(c) for c in world.podman.containers.values() if c.state == "paused"}
    return sorted(paused | set(filter(world.agent.is_to_pause, world.desired)))
