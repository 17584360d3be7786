"""May a pod that runs have other resources? And which containers another one replaces for it. Pure.

Mirrors pkg/kubelet/allocation/handlers.go and canAdmitPod of allocation_manager.go. Different on purpose: every pod is
a static one here, and is resized all the same. There is neither a CPU nor a memory manager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.pods.containers import all_containers
from ipc.k8s.kubecontainer.resize import changed_resources, restarting_resources, why_not_in_place
from ipc.k8s.podresources.allocation import (
    RESIZABLE,
    allocation_from_pod,
    resource_amounts,
    update_pod_from_allocation,
)
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_requests
from ipc.k8s.podresources.swap import may_swap
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resource_fit import allocatable, shortages

DEFERRED: Final = "Deferred"
"""There is no room for it now."""
INFEASIBLE: Final = "Infeasible"
"""There will never be."""


SWAP_MESSAGE: Final = "In-place resize of containers with swap is not supported."


class PendingResize(msgspec.Struct, frozen=True):
    """Why a resize is not done: reason and message of its condition."""

    reason: str
    message: str
    detail: str = "insufficient_node_allocatable"
    """Label of the metric of those that can never be done."""
    shortage: str = ""
    """Reason of admission for which it waits, such as ``OutOfcpu``: the event says that."""


def resize_problem(before: Pod, pod: Pod, others: NodeUsage, node: NodeResources) -> PendingResize | None:
    """Why the pod cannot have what its manifest asks for, beside the other pods; None when it can. ``before``: with the
    resources that it was allocated."""
    if _changes_swap(before, pod, node):
        return PendingResize(INFEASIBLE, SWAP_MESSAGE, "swap_limitation")
    capacity, wanted = allocatable(node), pod_requests(pod)
    for name in (MEMORY, CPU):
        if capacity and wanted.get(name, 0) > capacity.get(name, 0):
            numbers = f"requested: {wanted[name]}, capacity: {capacity.get(name, 0)}"
            return PendingResize(INFEASIBLE, f"Node didn't have enough capacity: {name}, {numbers}")
    places = len(others) + 1  # it has its own
    shortage = next(shortages(pod, others, node, places), None)
    return PendingResize(DEFERRED, shortage.message, shortage=shortage.reason) if shortage is not None else None


def _changes_swap(before: Pod, after: Pod, node: NodeResources) -> bool:
    """Whether a running container would need another share of the swap (disallowResizeForSwappableContainers). One that
    restarts for other memory gets it as it starts."""
    known = {container.name: container for _, container in all_containers(before.spec, "spec")}
    pairs = ((known[new.name], new) for _, new in all_containers(after.spec, "spec") if new.name in known)
    return any(_changes_swap_of(before, old, after, new, node) for old, new in pairs)


def _changes_swap_of(before: Pod, old: Container, after: Pod, new: Container, node: NodeResources) -> bool:
    if not (may_swap(before, old, node) or may_swap(after, new, node)) or MEMORY in restarting_resources(old):
        return False
    is_changed = amount(old.resources.requests, MEMORY) != amount(new.resources.requests, MEMORY)
    return is_changed and MEMORY not in _why_not_in_place(before, after, node)


def restarts_for_resize(before: Pod, after: Pod, node: NodeResources) -> Iterator[str]:
    """One warning for each container that a resize restarts against its resizePolicy."""
    why = _why_not_in_place(before, after, node)
    known = {container.name: container for _, container in all_containers(before.spec, "spec")}
    for path, container in all_containers(after.spec, "spec"):
        changed = _changed(before, after, known.get(container.name), container)
        if changed & why.keys() and not changed & restarting_resources(container):
            names = " and ".join(name for name in RESIZABLE if name in changed)
            reason = next(why[name] for name in RESIZABLE if name in changed & why.keys())
            what = f"{path}.resources: {names} changed"
            yield f"{what}: {reason}: {container.name} is restarted, against its resizePolicy"


def _why_not_in_place(before: Pod, after: Pod, node: NodeResources) -> dict[str, str]:
    """As the worker will find it: an edited manifest may add, move and rename containers at the same time."""
    had = update_pod_from_allocation(after, allocation_from_pod(before))
    return why_not_in_place(had, after, node.controllers)


def _changed(before: Pod, after: Pod, old: Container | None, new: Container) -> frozenset[str]:
    if old is None:
        return frozenset()
    pairs = ((before.spec.resources, old.resources), (after.spec.resources, new.resources))
    return changed_resources(*(resource_amounts(whole, own) for whole, own in pairs))
