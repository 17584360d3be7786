"""May a pod that runs have other resources? And which containers another one replaces for it. Pure.

Mirrors pkg/kubelet/allocation/handlers.go and canAdmitPod of allocation_manager.go. Different on purpose: every pod here
is a static one and is resized all the same. There is neither a CPU nor a memory manager, and no swap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.resize import changed_resources, restarting_resources, why_not_in_place
from ipc.podresources.allocation import RESIZABLE, resource_amounts
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_requests import CPU, MEMORY, pod_requests
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resource_fit import allocatable, resource_problem

DEFERRED: Final = "Deferred"
"""There is no room for it now."""
INFEASIBLE: Final = "Infeasible"
"""There will never be."""


class PendingResize(msgspec.Struct, frozen=True):
    """Why a resize is not done: reason and message of its condition."""

    reason: str
    message: str


def resize_problem(pod: Pod, others: NodeUsage, node: NodeResources) -> PendingResize | None:
    """Why the pod cannot have what its manifest asks for, beside the other pods; None when it can."""
    capacity, wanted = allocatable(node), pod_requests(pod)
    for name in (MEMORY, CPU):
        if capacity and wanted.get(name, 0) > capacity.get(name, 0):
            numbers = f"requested: {wanted[name]}, capacity: {capacity.get(name, 0)}"
            return PendingResize(INFEASIBLE, f"Node didn't have enough capacity: {name}, {numbers}")
    problem = resource_problem(pod, others, node)
    return PendingResize(DEFERRED, problem[1]) if problem is not None else None


def restarts_for_resize(before: Pod, after: Pod, node: NodeResources) -> Iterator[str]:
    """One warning for each container that a resize restarts against its resizePolicy."""
    why = why_not_in_place(before, after, node.controllers)
    whole = before.spec.resources, after.spec.resources
    lists = (
        ("initContainers", before.spec.init_containers, after.spec.init_containers),
        ("containers", before.spec.containers, after.spec.containers),
    )
    for kind, old, new in lists:
        known = {container.name: container for container in old}
        for index, container in enumerate(new):
            if container.name not in known:
                continue
            amounts = (resource_amounts(whole[0], known[container.name].resources), resource_amounts(whole[1], container.resources))
            changed = changed_resources(*amounts)
            if not changed & restarting_resources(container) and changed & why.keys():
                names = " and ".join(name for name in RESIZABLE if name in changed)
                reason = next(why[name] for name in RESIZABLE if name in changed & why.keys())
                what = f"spec.{kind}[{index}].resources: {names} changed"
                yield f"{what}: {reason}: {container.name} is restarted, against its resizePolicy"
