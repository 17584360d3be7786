"""Devices of the node, and which pod's containers have them (pkg/kubelet/cm/devicemanager).

Holds no state of its own: what was given is kept with the pods' other resources, and outlives the agent there. A
container that runs says itself with which devices it was made; that counts more than the record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.podresources.devices import NOTHING, Allocated, Devices
from supervisor.admission.devices import DeviceError, allocate, asks_for_devices, names_by_resource
from supervisor.managers.allocation import AllocationManager


class DeviceManager:
    """Gives devices to pods that are admitted, and takes them back."""

    def __init__(
        self, devices: Devices, allocations: AllocationManager, statuses: Callable[[], Mapping[str, RuntimePodStatus]]
    ) -> None:
        self._devices = devices
        self._allocations = allocations
        self._statuses = statuses

    def given(self, uid: str) -> Allocated:
        """Devices of the pod's containers."""
        return self._allocations.devices(uid) if self._devices else NOTHING

    def problem(self, pod: Pod) -> str:
        """Error for a pod that cannot have its devices; empty when it can."""
        try:
            self._draw(pod)
        except DeviceError as error:
            return f"Allocate failed due to {error}, which is unexpected"
        return ""

    def allocate(self, pod: Pod) -> None:
        """The pod has its devices from now on. Raises DeviceError."""
        if self._devices:
            self._allocations.set_devices(pod.metadata.uid, self._draw(pod))

    def release(self, uid: str) -> None:
        """Nothing of the pod runs any more."""
        self._allocations.set_devices(uid, NOTHING)

    def observed(self, pod: Pod | None, seen: RuntimePodStatus, find: Callable[[str], Pod | None]) -> None:
        """Believe what the pod's containers run with. A pod that was given the same by a record that was lost or is too
        old, and does not run with it, is given another one, if there is one. ``find``: the pods by UID."""
        held, record = _held_by(seen), self._allocations.devices(seen.uid)
        if not held or pod is None or all(record.get(name) == own for name, own in held.items()):
            return
        try:
            believed = allocate(pod, self._devices, _by_resource(self._running(seen.uid)), _merged(held, record))
        except DeviceError:  # what it asks for by now cannot be had: it was not admitted so, and stays as it is
            return
        self._allocations.set_devices(seen.uid, believed)
        theirs = set(names_by_resource(believed))
        for uid, allocated in list(self._allocations.all_devices()):
            other = find(uid) if uid != seen.uid else None
            if other is not None and not theirs.isdisjoint(names_by_resource(allocated)):
                self._draw_again(other)

    def _draw_again(self, pod: Pod) -> None:
        """Without any it has none, and a container of it that is made then fails for that reason."""
        uid = pod.metadata.uid
        status = self._statuses().get(uid)
        self._allocations.set_devices(uid, _held_by(status) if status is not None else NOTHING)
        with contextlib.suppress(DeviceError):
            self.allocate(pod)

    def _draw(self, pod: Pod) -> Allocated:
        """Raises DeviceError."""
        if not asks_for_devices(pod, self._devices):
            return NOTHING
        uid = pod.metadata.uid
        records = (own for other, own in self._allocations.all_devices() if other != uid)
        in_use = _by_resource((*records, *self._running(uid)))
        return allocate(pod, self._devices, in_use, self._allocations.devices(uid))

    def _running(self, uid: str) -> Iterator[Allocated]:
        """Devices with which containers of other pods run, those of pods that nobody wants any more among them."""
        return (_held_by(status) for other, status in self._statuses().items() if other != uid)


def _by_resource(allocated: Iterable[Allocated]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in allocated:
        for resource, name in names_by_resource(each):
            found.setdefault(resource, set()).add(name)
    return found


def _merged(first: Allocated, then: Allocated) -> Allocated:
    """Of each container the devices of both, in this order."""
    return {
        container: {
            resource: (*first.get(container, {}).get(resource, ()), *then.get(container, {}).get(resource, ()))
            for resource in {**first.get(container, {}), **then.get(container, {})}
        }
        for container in {**first, **then}
    }


def _held_by(status: RuntimePodStatus) -> Allocated:
    """Devices of the containers that run, or may."""
    up = (ContainerState.RUNNING, ContainerState.UNKNOWN)
    return {found.name: found.devices for found in status.containers if found.state in up and found.devices}
