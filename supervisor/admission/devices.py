"""Devices that each container of a pod is given. Pure.

Mirrors Allocate, allocateContainerResources and devicesToAllocate (pkg/kubelet/cm/devicemanager/manager.go). Different
on purpose: devices are given out in the order of the configuration, not in any; and an edit may ask for another number,
of which a container keeps what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.k8s.podresources.devices import NOTHING, Allocated, Devices
from ipc.k8s.podresources.pod_requests import amount

NOBODY: Final[Mapping[str, AbstractSet[str]]] = {}


class DeviceError(Exception):
    """The pod cannot be given its devices."""


def allocate(
    pod: Pod, devices: Devices, in_use: Mapping[str, Collection[str]] = NOBODY, held: Allocated = NOTHING
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Devices of every container that asks for some. ``in_use``: names that other pods have, by resource; ``held``:
    those that this pod's containers have already, which they keep as far as they are healthy. Raises DeviceError."""
    draw = _Draw(devices, in_use, held)
    given: dict[str, dict[str, tuple[str, ...]]] = {}
    for init in pod.spec.init_containers:
        if own := draw.of(init):
            given[init.name] = own
        draw.passes_on(own, is_reusable=not is_restartable_init(init))
    for container in pod.spec.containers:
        if own := draw.of(container):
            given[container.name] = own
        draw.passes_on(own, is_reusable=False)
    return given


def asks_for_devices(pod: Pod, devices: Devices) -> bool:
    """Whether a container of the pod asks for one of the resources."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return any(not devices.keys().isdisjoint(container.resources.limits) for container in containers)


def names_by_resource(allocated: Allocated) -> Iterator[tuple[str, str]]:
    """Every device of the containers, with its resource."""
    return ((resource, name) for own in allocated.values() for resource, names in own.items() for name in names)


class _Draw:
    """One pod's devices, container after container."""

    def __init__(self, devices: Devices, in_use: Mapping[str, Collection[str]], held: Allocated) -> None:
        self._all = devices
        self._healthy = {
            resource: [name for name, device in those.items() if not device.problem]
            for resource, those in devices.items()
        }
        self._in_use = {resource: set(in_use.get(resource, ())) for resource in devices}
        """Names of devices that no container of the pod can be given any more, but for those to reuse."""
        self._held = held
        self._kept = set(names_by_resource(held))
        self._reusable: dict[str, set[str]] = {resource: set() for resource in devices}
        """Devices of init containers, which have ended when the next container begins (devicesToReuse)."""

    def of(self, container: Container) -> dict[str, tuple[str, ...]]:
        limits = container.resources.limits
        needed = {resource: amount(limits, resource) for resource in limits if resource in self._all}
        held = self._held.get(container.name, {})
        return {
            resource: self._take(resource, number, held.get(resource, ()))
            for resource, number in needed.items()
            if number
        }

    def passes_on(self, own: Mapping[str, Collection[str]], *, is_reusable: bool) -> None:
        for resource, names in own.items():
            if is_reusable:
                self._reusable[resource] |= set(names)
            else:
                self._reusable[resource] -= set(names)

    def _take(self, resource: str, needed: int, held: Sequence[str]) -> tuple[str, ...]:
        healthy, reusable = self._healthy[resource], self._reusable[resource]
        if not healthy:
            raise DeviceError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        free = [name for name in healthy if name not in self._in_use[resource] or name in reusable]
        kept = [name for name in dict.fromkeys(held) if name in free][:needed]
        # A device that another container of the pod has is taken last: that one keeps it, if it can.
        others = sorted(
            (name for name in free if name not in kept),
            key=lambda name: (name not in reusable, (resource, name) in self._kept),
        )
        missing = needed - len(kept)
        if len(others) < missing:
            numbers = f"Requested: {missing}, Available: {len(others)}"
            raise DeviceError(f"requested number of devices unavailable for {resource}. {numbers}")
        taken = (*kept, *others[:missing])
        self._in_use[resource] |= set(taken)
        return taken
