"""May a pod that runs have other resources? And which containers another one replaces for it. Pure.

Mirrors pkg/kubelet/allocation/handlers.go and canAdmitPod of allocation_manager.go. Different on purpose: every pod is
a static one here, and is resized all the same. There is neither a CPU nor a memory manager, and no swap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.api.validation.containers import all_containers
from ipc.kubecontainer.resize import changed_resources, restarting_resources, why_not_in_place
from ipc.podresources.allocation import RESIZABLE, resource_amounts
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_requests import CPU, MEMORY, pod_requests
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resource_fit import allocatable, shortages

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
    places = len(others) + 1  # it has its own
    shortage = next(shortages(pod, others, node, places), None)
    return PendingResize(DEFERRED, shortage.message) if shortage is not None else None


def restarts_for_resize(before: Pod, after: Pod, node: NodeResources) -> Iterator[str]:
    """One warning for each container that a resize restarts against its resizePolicy."""
    why = why_not_in_place(before, after, node.controllers)
    known = {container.name: container for _, container in all_containers(before.spec, "spec")}
    for path, container in all_containers(after.spec, "spec"):
        changed = _changed(before, after, known.get(container.name), container)
        if changed & why.keys() and not changed & restarting_resources(container):
            names = " and ".join(name for name in RESIZABLE if name in changed)
            reason = next(why[name] for name in RESIZABLE if name in changed & why.keys())
            what = f"{path}.resources: {names} changed"
            yield f"{what}: {reason}: {container.name} is restarted, against its resizePolicy"


def _changed(before: Pod, after: Pod, old: Container | None, new: Container) -> frozenset[str]:
    if old is None:
        return frozenset()
    pairs = ((before.spec.resources, old.resources), (after.spec.resources, new.resources))
    return changed_resources(*(resource_amounts(whole, own) for whole, own in pairs))
