"""A critical pod that comes to a full node."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from supervisor.config.settings import Settings
from supervisor.desired.pod_admission import PREEMPTED
from tests.sim import preemption
from tests.sim.frame import STEP_S
from tests.sim.poison import UID as POISON
from tests.sim.world import World

KILLED: Final = 0.4
"""Part of the simulations in which the agent is killed while a pod gives way to a critical one."""


async def preempt(world: World) -> None:
    """A critical pod comes while there is no place: one of the others gives it its own."""
    places = world.agent.active_pods()
    if places <= int(world.options.pressure):  # the one that never gives way
        return
    ended = max(0, len(world.desired) - places)
    world.trace.note(f"a critical pod comes, and there are {places} places")
    world.agent.limit_pods(places)
    world.desired[preemption.UID] = preemption.critical_pod()
    world.agent.state(world.desired)
    if is_killed := world.rng.random() < KILLED:
        await world.step(world.rng.uniform(0.0, preemption.LASTS_S))
        world.agent.die("killed while it preempts")
        settings = msgspec.structs.replace(world.given.settings, max_pods=places)
        world.given = msgspec.structs.replace(world.given, settings=settings)
        world.restart_agent(lost=False)
    end_at = world.now + preemption.PREEMPTING_S
    while not _has_preempted(world, is_killed) and world.now < end_at:
        await world.step(STEP_S)
        world.read_sources()
    gone = [uid for uid, sync in world.agent.newest.items() if preemption.is_preempted(sync)]
    may_be_poison = not gone and POISON in world.desired  # it goes in its own way
    if is_killed:  # then one may have been refused by the next agent instead
        gone = gone or [uid for uid in world.desired if _is_out(world, uid)]
    # The one that never gives way is critical too: stated anew meanwhile, it takes another one's place. And the next
    # agent counts pods that have ended until it has seen them, as upstream: each may cost another its place.
    most = 1 + int(world.options.pressure) + (ended if is_killed else 0)
    if not preemption.runs(world.podman, preemption.UID) or not (1 <= len(gone) <= most or may_be_poison):
        world.trace.broke(f"the critical pod does not run, or not one has given way: {gone}")
    world.agent.limit_pods(Settings().max_pods)


def _has_preempted(world: World, is_killed: bool) -> bool:
    is_told = not is_killed or any(map(partial(_is_out, world), world.desired))
    return is_told and preemption.runs(world.podman, preemption.UID)


def _is_out(world: World, uid: str) -> bool:
    """Whether it gave way, or there was no place for it."""
    told = world.agent.told.get(uid)
    return told is not None and told.status.reason in (PREEMPTED.reason, "OutOfpods")
