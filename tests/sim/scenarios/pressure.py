"""Pods and images that take too much of a quiet host."""

from __future__ import annotations

import random
from functools import partial

from tests.sim import pressure
from tests.sim.frame import SETTLE_S
from tests.sim.pressure import EVICTED_S, LEAST
from tests.sim.world import World


async def recover(world: World) -> None:
    """Nobody takes anything any more: the conditions end, and whoever was evicted is made anew."""
    world.host.calm_down()
    world.host.is_quiet = True
    await world.step(pressure.ROUND_S)
    await world.until(lambda: not world.agent.has_pressure, "the node has enough of everything", SETTLE_S)
    lost = {uid: pod for uid, pod in world.desired.items() if world.is_evicted(uid)}
    await world.replace(lost, {})
    await world.replace({}, lost)


async def press(world: World) -> None:
    """A pod or two take too much: they go, in their order, and nobody else does."""
    plan, host = pressure.plan(random.Random(world.rng.random())), world.host
    hogs = {uid: pressure.simple_pod(uid, priority=priority) for uid, priority in plan.hogs.items()}
    await world.replace((), hogs)
    await world.until(lambda: all(world.runs(uid) for uid in hogs), "those run that will take too much")
    world.trace.note(f"{len(hogs)} pods take too much: {plan.taken.value}, {host.layout.value}")
    before = len(world.agent.pressure.evicted)
    for uid, amount in plan.amounts(host).items():
        host.take(uid, plan.taken, amount)
    await world.until(lambda: world.agent.has_pressure, "the node has pressure")
    late = pressure.simple_pod(pressure.LATECOMER)
    await world.replace((), {pressure.LATECOMER: late})
    await world.until(lambda: world.is_evicted(pressure.LATECOMER), "the pod that came under pressure is refused")
    if plan.kills_agent:
        await world.until(lambda: len(world.agent.pressure.evicted) > before, "one is evicted")
        world.agent.die("killed while it evicts")
        world.restart_agent(lost=False)
        before = 0
    await world.until(lambda: all(map(partial(_is_gone, world), hogs)), "those that took too much are gone", EVICTED_S)
    went = world.agent.pressure.evicted[before:]
    expected = [uid for uid in hogs if uid not in world.agent.pressure.restored]
    if went != expected:
        world.trace.broke(f"{went} were evicted, and not {expected}")
    await world.until(lambda: not world.agent.has_pressure, "the node has enough again")
    await world.replace((*hogs, pressure.LATECOMER), {})
    await world.come_to_rest()


async def fill_with_images(world: World) -> None:
    """Images that nobody uses take too much: they go, and no pod does."""
    name, host = pressure.LARGE_IMAGE, world.host
    world.trace.note(f"an image takes too much, {host.layout.value}")
    await world.replace((), {pressure.IMAGE_USER: pressure.simple_pod(pressure.IMAGE_USER, image=name)})
    await world.until(lambda: world.runs(pressure.IMAGE_USER), "the pod of the large image runs")
    await world.replace((pressure.IMAGE_USER,), {})
    await world.step(2 * pressure.IMAGE_AGE_S)
    before = tuple(world.agent.pressure.evicted)
    signal = host.signal_of_images
    world.podman.image_bytes[name] = host.available(signal) - LEAST[signal] + 1
    await world.until(lambda: name not in world.podman.images, "the large image is gone")
    await world.until(lambda: not world.agent.has_pressure, "the node has enough again")
    if tuple(world.agent.pressure.evicted) != before:
        world.trace.broke(f"{world.agent.pressure.evicted} were evicted, and only images were too many")


def _is_gone(world: World, uid: str) -> bool:
    """Evicted, and nothing is left of it."""
    world.read_sources()
    return world.is_evicted(uid) and not world.podman.of_pod(uid)
