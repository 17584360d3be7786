"""The slice of a pod that vanishes under it."""

from __future__ import annotations

from tests.sim.frame import SETTLE_S
from tests.sim.runtime import uid_of
from tests.sim.world import World


async def lose_slice(world: World) -> None:
    """The slice of a pod vanishes under it: the pod is killed, and made again in one of its own. Not while a sync is
    under way that may start a container: that makes the slice again, and nobody sees that it was gone."""
    container = world.any_running()
    if container is None or not container.cgroup_parent or uid_of(container) in world.agent.in_flight:
        return
    uid = uid_of(container)
    before = {c.id for c in world.podman.of_pod(uid) if c.state == "running"}
    world.trace.note(f"the slice of {uid[:8]} vanishes")
    del world.podman.slices[container.cgroup_parent]

    def is_killed() -> bool:
        return not before & {c.id for c in world.podman.of_pod(uid) if c.state == "running"}

    await world.until(is_killed, f"{uid[:8]} does not run outside of its slice", SETTLE_S)
    await world.come_to_rest()
