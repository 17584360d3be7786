"""Devices of the node, and which pod's containers have them (pkg/kubelet/cm/devicemanager).

Allocations are kept with the pods' other resources, and so outlive the agent. The labels of a running container name
its devices; they count more than the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.k8s.podresources.devices import NOTHING, Allocated, Devices
from supervisor.admission.devices import DeviceError, allocate, asks_for_devices, names_by_resource
from supervisor.managers.allocation import AllocationManager


class DeviceManager:
    """Allocates devices to admitted pods, and frees them."""

    def __init__(
        self, devices: Devices, allocations: AllocationManager, statuses: Callable[[], Mapping[str, RuntimePodStatus]]
    ) -> None:
        self._devices = devices
        self._allocations = allocations
        self._statuses = statuses
        self._waiting: list[Pod] = []
        """Pods that were admitted to devices of others, which go down and still have them. First come, first served."""

    def recount(self, devices: Devices) -> tuple[str, ...]:
        """Devices as they are found now; what pods have they keep. UIDs of pods that need not wait any longer."""
        self._devices = devices
        return self._give_to_waiting()

    def known(self, pod: Pod | None) -> Devices:
        """Devices that the pod has, of each resource that it asks for."""
        if pod is None or not self._devices or not asks_for_devices(pod, self._devices):
            return {}
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        wanted = {name for container in containers for name in container.resources.limits}
        has = set(names_by_resource(self._allocations.devices(pod.metadata.uid)))
        return {
            resource: {name: device for name, device in those.items() if (resource, name) in has}
            for resource, those in self._devices.items()
            if resource in wanted
        }

    def given(self, uid: str) -> Allocated:
        """Devices of the pod's containers."""
        return self._allocations.devices(uid) if self._devices else NOTHING

    def problem(self, pod: Pod, leaving: Callable[[], Collection[str]] = tuple) -> str:
        """Error for a pod that cannot have its devices, not even those of the pods that go down (``leaving``: their
        UIDs); empty when it can."""
        try:
            self._draw(pod)
        except DeviceError:
            try:
                self._draw_later(pod, leaving())
            except DeviceError as error:
                return f"Allocate failed due to {error}, which is unexpected"
        return ""

    def allocate(self, pod: Pod) -> None:
        """The pod, which was admitted, has its devices from now on, or when those have ended that still have them."""
        uid = pod.metadata.uid
        self._leave_queue(uid)
        try:
            self._allocations.set_devices(uid, self._draw(pod))
        except DeviceError:
            self._waiting.append(pod)

    def is_waiting(self, uid: str) -> bool:
        """Whether others still have the devices of the pod."""
        return any(pod.metadata.uid == uid for pod in self._waiting)

    def _leave_queue(self, uid: str) -> None:
        self._waiting = [pod for pod in self._waiting if pod.metadata.uid != uid]

    def release(self, uid: str) -> tuple[str, ...]:
        """Nothing of the pod runs any more: UIDs of pods that need not wait any longer."""
        self._leave_queue(uid)
        self._allocations.set_devices(uid, NOTHING)
        return self._give_to_waiting()

    def _give_to_waiting(self) -> tuple[str, ...]:
        waited = self._waiting
        for pod in waited:
            self.allocate(pod)
        return tuple(pod.metadata.uid for pod in waited if not self.is_waiting(pod.metadata.uid))

    def observed(self, pod: Pod | None, seen: RuntimePodStatus, find: Callable[[str], Pod | None]) -> None:
        """Believe what the pod's containers run with. A pod that was given the same by a record that was lost or is too
        old, and does not run with it, is given another one, if there is one. ``find``: the pods by UID."""
        held, record = _held_by(seen), self._allocations.devices(seen.uid)
        if not held or pod is None or all(record.get(name) == own for name, own in held.items()):
            return
        try:
            believed = allocate(pod, self._devices, _by_resource(self._running({seen.uid})), _merged(held, record))
        except DeviceError:  # what it asks for by now cannot be had: it was not admitted so, and stays as it is
            return
        self._allocations.set_devices(seen.uid, believed)
        theirs = set(names_by_resource(believed))
        for uid, allocated in list(self._allocations.all_devices()):
            other = find(uid) if uid != seen.uid else None
            if other is not None and not theirs.isdisjoint(names_by_resource(allocated)):
                self._draw_again(other)

    def _draw_again(self, pod: Pod) -> None:
        """The pod waits where there is none."""
        uid = pod.metadata.uid
        status = self._statuses().get(uid)
        self._allocations.set_devices(uid, _held_by(status) if status is not None else NOTHING)
        self.allocate(pod)

    def _draw(self, pod: Pod) -> Allocated:
        """Raises DeviceError."""
        if not asks_for_devices(pod, self._devices):
            return NOTHING
        uid = pod.metadata.uid
        return allocate(pod, self._devices, _by_resource(self._others({uid})), self._allocations.devices(uid))

    def _draw_later(self, pod: Pod, leaving: Collection[str]) -> None:
        """Behind those that wait already. Raises DeviceError."""
        uid = pod.metadata.uid
        others = list(self._others({uid, *leaving}))
        for waiting in self._waiting:
            if waiting.metadata.uid != uid:
                others.append(allocate(waiting, self._devices, _by_resource(others)))
        allocate(pod, self._devices, _by_resource(others), self._allocations.devices(uid))

    def _others(self, without: Collection[str]) -> Iterator[Allocated]:
        yield from (own for uid, own in self._allocations.all_devices() if uid not in without)
        yield from self._running(without)

    def _running(self, without: Collection[str]) -> Iterator[Allocated]:
        """Devices with which containers of other pods run, those of pods that nobody wants any more among them."""
        return (_held_by(status) for uid, status in self._statuses().items() if uid not in without)


def _by_resource(allocated: Iterable[Allocated]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in allocated:
        for resource, name in names_by_resource(each):
            found.setdefault(resource, set()).add(name)
    return found


def _merged(first: Allocated, then: Allocated) -> Allocated:
    """Each container's devices of both, in this order."""
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
