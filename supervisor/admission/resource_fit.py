"""Whether a node has enough left for a pod, and which of its limits nobody enforces. Pure."""

from __future__ import annotations

from ipc.api.v1.pod import Pod
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_requests import COMPUTE, amount, pod_requests
from supervisor.admission.node_usage import NodeUsage


def allocatable(node: NodeResources) -> dict[str, int]:
    """In the units of `ipc.podresources.pod_requests`; empty for a node of which nothing is known."""
    return {name: amount(node.allocatable, name) for name in COMPUTE} if node.allocatable else {}


def resource_problem(pod: Pod, others: NodeUsage, node: NodeResources) -> tuple[str, str] | None:
    """Reason and message (noderesources.Fits, and InsufficientResourceError's words); None when there is room."""
    capacity, wanted = allocatable(node), pod_requests(pod)
    if not (capacity and wanted):
        return None
    for resource, asked in wanted.items():
        used = others.requested(resource)
        room = capacity.get(resource, 0)
        if used + asked > room:
            numbers = f"requested: {asked}, used: {used}, capacity: {room}"
            return f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {numbers}"
    return None


def unenforced(pod: Pod, node: NodeResources) -> tuple[str, ...]:
    """What is set for a controller that this user does not have: it has no effect."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    asked = [container.resources for container in containers]
    asked += [pod.spec.resources] if pod.spec.resources is not None else []
    named = {name for each in asked for name in each.limits} | {"cpu" for each in asked if "cpu" in each.requests}
    idle = [name for name in ("cpu", "memory") if name in named - node.controllers and node.allocatable]
    if not idle:
        return ()
    return (f"resources: {' and '.join(idle)}: not enforced, no such cgroup controller is delegated to this user",)
