"""Whether a node has enough left for a pod, and which of its limits nobody enforces. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import COMPUTE, PODS, amount, is_counted, pod_requests
from supervisor.admission.node_usage import NodeUsage

_DELEGATE: Final = "Delegate=cpu memory pids in user@.service allows it"
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
MAX_SHOWN: Final = 10
"""Most resources that one warning names."""


def allocatable(node: NodeResources) -> dict[str, int]:
    """Resources that pods may have together, in the units of `ipc.k8s.podresources.pod_requests`; empty for a node of
    which nothing is known."""
    return {name: amount(node.allocatable, name) for name in COMPUTE} if node.allocatable else {}


class Shortage(msgspec.Struct, frozen=True):
    """A resource of which the node has not enough left (InsufficientResourceError)."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """Amount that others would have to give back."""
        return self.requested - (self.capacity - self.used)

    @property
    def reason(self) -> str:
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        numbers = f"requested: {self.requested}, used: {self.used}, capacity: {self.capacity}"
        return f"Node didn't have enough resource: {self.resource}, {numbers}"


def shortages(pod: Pod, others: NodeUsage, node: NodeResources, max_pods: int) -> Iterator[Shortage]:
    """All resources for which the pod has no room beside the others (noderesources.Fits): places first."""
    wanted, capacity = {PODS: 1}, {PODS: max_pods}
    if (requests := pod_requests(pod)) and (room := allocatable(node)):
        wanted, capacity = {**wanted, **requests}, {**capacity, **room}
    for resource, asked in wanted.items():
        used, limit = len(others) if resource == PODS else others.requested(resource), capacity.get(resource, 0)
        if used + asked > limit:
            yield Shortage(resource, asked, used, limit)


def unprovided(pod: Pod, node: NodeResources) -> tuple[str, ...]:
    """Warning of requested resources that nobody here has: they are not counted, as upstream does not count them for a
    node that lacks them (removeMissingExtendedResources), and no container gets any."""
    asked = (each.resources for each in (*pod.spec.init_containers, *pod.spec.containers))
    names = sorted(
        {
            name
            for each in asked
            for name in (*each.limits, *each.requests)
            if not is_counted(name) and name not in node.devices
        }
    )
    if not names:
        return ()
    shown = ", ".join(names[:MAX_SHOWN]) + (f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else "")
    return (f"resources: {shown}: nothing on this host provides it: it is not counted, and no container gets any",)


def unenforced(pod: Pod, node: NodeResources) -> tuple[str, ...]:
    """Warning of requests and limits whose cgroup controller this user does not have: they have no effect."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    asked = [container.resources for container in containers]
    asked += [pod.spec.resources] if pod.spec.resources is not None else []
    named = {name for each in asked for name in each.limits} | {"cpu" for each in asked if "cpu" in each.requests}
    idle = [name for name in ("cpu", "memory") if name in named - node.controllers and node.allocatable]
    if not idle:
        return ()
    what = " and ".join(idle)
    return (f"resources: {what}: not enforced: this user may not set {what} of cgroups: {_DELEGATE}",)


def fractions(pod: Pod) -> tuple[str, ...]:
    """Warnings of amounts of memory or disk that are no whole bytes: m means a thousandth (pkg/api/pod/warnings.go)."""
    kinds = (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers))
    asked = (
        (f"spec.{kind}[{index}].resources.{side}[{name}]", quantity)
        for kind, containers in kinds
        for index, container in enumerate(containers)
        for side, amounts in (("requests", container.resources.requests), ("limits", container.resources.limits))
        for name, quantity in amounts.items()
        if name in _BYTES
    )
    wrong = [(path, str(found)) for path, found in asked if parse_quantity(found).denominator != 1]
    return tuple(
        f'{path}: fractional byte value "{found}" is invalid, must be an integer{_meant(found)}'
        for path, found in wrong[:MAX_SHOWN]
    )


def _meant(quantity: str) -> str:
    """A thousandth is written for a million."""
    number = quantity.removesuffix("m")
    return f": did you mean {number}M or {number}Mi?" if number != quantity else ""
