"""A quiet node that is drained, and a quiet host that goes down."""

from __future__ import annotations

from functools import partial

from tests.sim import shutdowns
from tests.sim.frame import DOWN_S, STEP_S
from tests.sim.shutdowns import SimShutdown
from tests.sim.world import World


async def drain(world: World) -> None:
    """Every pod ends, within its grace period and what hooks may add; then each comes back."""
    world.agent.drain()
    end_at = world.now + DOWN_S
    while (not world.agent.is_down or world.left()) and world.now < end_at:
        await world.step(STEP_S)
    if (left := world.left()) or not world.agent.is_down:
        world.trace.broke(f"{DOWN_S:g} s after the node was drained there run {left}")
    world.agent.uncordon()
    await world.come_to_rest()


async def go_down(world: World, shutdown: SimShutdown) -> None:
    """The host goes down, whoever dies meanwhile: every pod ends. Then it stays up after all, or comes up again."""
    world.go_down()
    if shutdown.rng.random() < shutdowns.KILLED:
        await world.step(shutdown.rng.uniform(0.0, shutdowns.TAKES_S))
        world.kill_agent_alone() if shutdown.rng.random() < 0.6 else world.kill_worker()
    if shutdown.rng.random() < shutdowns.CALLED_OFF:
        await world.step(shutdown.rng.uniform(0.0, shutdowns.TAKES_S))
    else:
        await world.until(partial(_is_down, world), "every pod has ended with the host")
    if shutdown.rng.random() < shutdowns.REBOOTS:
        world.reboot()
    else:
        world.stay_up()
    await world.until(partial(_has_read_sources, world), "the agent knows what is wanted")
    await world.come_to_rest()


def _is_down(world: World) -> bool:
    world.read_sources()
    return world.agent.is_down and not world.left()


def _has_read_sources(world: World) -> bool:
    world.read_sources()
    return world.agent.sources_ready
