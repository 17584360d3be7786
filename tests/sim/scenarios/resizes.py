"""A resize for which its container has to restart: it does so once, whoever dies meanwhile."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.container import ContainerResizePolicy, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.pod_requests import CPU, MEMORY
from tests.sim.pressure import simple_pod
from tests.sim.world import World

UID: Final = "0000dddd-resized"
LASTS_S: Final = 1.0
"""Within which somebody dies: most of these resizes are over by then, and a write takes a third of it."""
RESIZED_S: Final = 60.0
AFTERWARDS_S: Final = 20.0
"""How long it is seen that nothing more restarts."""


async def resize_one(world: World) -> None:
    """An edit of the limits, and a death at any time of what follows."""
    await world.replace((), {UID: _pod("3")})
    await world.until(lambda: _restarts(world) == 0, "it runs")
    world.desired[UID] = _pod("4")
    world.agent.state(world.desired)
    await world.step(world.rng.uniform(0.0, LASTS_S))
    world.kill_agent_alone() if world.rng.random() < 0.7 else world.kill_worker()

    def is_resized() -> bool:
        world.read_sources()
        return _restarts(world) == 1

    await world.until(is_resized, "it is restarted for its resources, once", RESIZED_S)
    await world.step(AFTERWARDS_S)
    if not is_resized():
        world.trace.broke(f"after a resize it has restarted {_restarts(world)} times")
    await world.replace((UID,), {})


def _pod(cpu: str) -> Pod:
    pod = simple_pod(UID)
    (one,) = pod.spec.containers
    sized = msgspec.structs.replace(
        one,
        resources=ResourceRequirements(requests={MEMORY: "16Mi"}, limits={CPU: cpu}),
        resize_policy=(ContainerResizePolicy(resource_name=CPU, restart_policy="RestartContainer"),),
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(sized,)))


def _restarts(world: World) -> int:
    """Restart count of its container while that runs, else -1."""
    told = world.agent.told.get(UID)
    statuses = told.status.container_statuses if told is not None else ()
    return next((status.restart_count for status in statuses if status.state.running is not None), -1)
