"""Resources that each pod was allocated and that its containers were given, and what is pending of its resize.

Holds state, no I/O. Mirrors pkg/kubelet/allocation (allocation_manager.go, state) and what the status manager keeps of
resizes (pkg/kubelet/status/status_manager.go, podResizeConditions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodCondition
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podresources.allocation import (
    allocation_from_pod,
    is_resize_increasing_requests,
    update_pod_from_allocation,
)
from ipc.k8s.podresources.devices import Allocated
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.k8s.scheduling.priority import pod_priority
from supervisor.pods.parts import KnownPods, PodParts
from supervisor.state.resources_checkpoint import NONE, PodResources

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
ERROR: Final = "Error"
"""Reason of IN_PROGRESS when the last try has failed."""
_GUARANTEED: Final = "Guaranteed"


class PendingPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod whose resize is pending, as its place among others depends on it."""

    before: Pod
    """With the resources that it was allocated."""
    after: Pod
    qos: str = ""
    """QoS class of the pod; empty: as its resources have it."""
    since: str = ""
    """When its resize was put off first; empty when it was not tried yet."""


class AllocationManager:
    """Owns the resources of every pod, and the order of pending resizes."""

    def __init__(self, known: KnownPods) -> None:
        self._known = known
        known.on_forget(self._forgotten)
        self._pending: list[str] = []
        """UIDs, in the order in which they are tried."""
        self.version = 0
        """Grows with every change of what outlives the agent."""
        self.urgent_version = 0
        """The newest change that only this record knows: a pod that comes has what its manifest asks for, and one that
        is gone has nothing."""

    def all_resources(self) -> Mapping[str, PodResources]:
        """A copy of everything that outlives the agent, by UID."""
        return {uid: parts.resources for uid, parts in self._known.items() if parts.resources is not None}

    def restore(self, pods: Mapping[str, PodResources]) -> None:
        """Take over what an agent before this one has kept."""
        for uid, resources in pods.items():
            parts = self._known.of(uid)
            parts.resources, parts.are_resources_stale = resources, True

    def resources(self, uid: str) -> PodResources:
        """Everything of one pod."""
        return self._known.find(uid).resources or NONE

    # --- allocated and actuated resources ------------------------------------------------------------------------

    def allocated(self, pod: Pod) -> Pod:
        """The pod with the resources that it was allocated; a container or a pod that is new has what it asks for."""
        known = self._known.find(pod.metadata.uid).resources
        return update_pod_from_allocation(pod, known.allocated) if known is not None else pod

    def allocate(self, pod: Pod) -> None:
        """The pod has what it asks for (SetAllocatedResources)."""
        uid, allocated = pod.metadata.uid, allocation_from_pod(pod)
        known = self._known.find(uid).resources
        if known is None or known.allocated != allocated:
            self._put(uid, msgspec.structs.replace(known or NONE, allocated=allocated), is_urgent=known is not None)

    def actuated(self, uid: str) -> Mapping[str, ResourceRequirements]:
        """Resources that the pod was given, by id of container or sandbox; one that is absent has what it was made
        with."""
        return self.resources(uid).actuated

    def actuate(self, uid: str, given: Mapping[str, ResourceRequirements]) -> None:
        """A worker has given these to what runs."""
        known = self._known.find(uid).resources
        if given and known is not None:
            self._put(uid, msgspec.structs.replace(known, actuated={**known.actuated, **given}))

    def are_stale(self, uid: str) -> bool:
        """Whether what runs of the pod may have other resources than `actuated` says."""
        return self._known.find(uid).are_resources_stale

    def mark_stale(self, uid: str) -> None:
        """A sync of the pod has ended without a report."""
        self._known.of(uid).are_resources_stale = True

    def mark_fresh(self, uid: str) -> None:
        """A sync has inspected the pod, or has changed nothing."""
        self._known.of(uid).are_resources_stale = False

    def drop_gone(self, uid: str, seen: RuntimePodStatus) -> None:
        """Forget containers and sandboxes that are gone."""
        known = self.resources(uid)
        if not known.actuated:
            return
        there = {container.id for container in seen.containers} | {sandbox.id for sandbox in seen.sandboxes}
        kept = {id: given for id, given in known.actuated.items() if id in there}
        if len(kept) < len(known.actuated):
            self._put(uid, msgspec.structs.replace(known, actuated=kept))

    def _forgotten(self, uid: str, parts: PodParts) -> None:
        """Nothing of the pod is left (RemovePod), or no source wants it (RemoveOrphanedPods)."""
        self.version += parts.resources is not None
        self.drop_pending(uid)

    def _put(self, uid: str, resources: PodResources, *, is_urgent: bool = True) -> None:
        self._known.of(uid).resources = resources
        self.version += 1
        if is_urgent:
            self.urgent_version = self.version

    # --- devices -------------------------------------------------------------------------------------------------

    def devices(self, uid: str) -> Allocated:
        """Devices that the pod's containers have."""
        return self.resources(uid).devices

    def all_devices(self) -> Iterator[tuple[str, Allocated]]:
        """UIDs of pods with devices, and those."""
        return ((uid, pod.devices) for uid, parts in self._known.items() if (pod := parts.resources) and pod.devices)

    def set_devices(self, uid: str, devices: Allocated) -> None:
        """The pod's containers have these from now on."""
        known = self.resources(uid)
        if known.devices != devices:
            self._put(uid, msgspec.structs.replace(known, devices=devices))

    # --- pending resizes -----------------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[str, ...]:
        """UIDs of pods whose resize is to be tried again, in this order."""
        return tuple(self._pending)

    def push_pending(self, uid: str, find: Callable[[str], PendingPod | None]) -> None:
        """PushPendingResize; ``find`` knows the pods, and None of one that is gone."""
        uids = self._pending if uid in self._pending else [*self._pending, uid]
        found = {each: pod for each in uids if (pod := find(each)) is not None}
        self._pending = sort_pending_resizes(found)

    def drop_pending(self, uid: str) -> None:
        """Do not try it again."""
        self._pending = [each for each in self._pending if each != uid]

    # --- conditions ----------------------------------------------------------------------------------------------

    def conditions(self, uid: str) -> tuple[PodCondition, ...]:
        """GetPodResizeConditions."""
        return self.resources(uid).conditions

    def condition(self, uid: str, type: str) -> PodCondition | None:
        """The condition of that type, if the pod has it."""
        return next((condition for condition in self.conditions(uid) if condition.type == type), None)

    def set_condition(self, uid: str, type: str, reason: str, message: str, generation: int, now: str) -> bool:
        """False when it says the same already."""
        old = self.condition(uid, type)
        new = updated_resize_condition(type, old, reason, message, generation, now)
        if new is None or self._known.find(uid).resources is None:
            return False
        self._set(uid, (*(other for other in self.conditions(uid) if other.type != type), new))
        return True

    def clear_condition(self, uid: str, type: str) -> bool:
        """False when the pod has none of that type."""
        if self.condition(uid, type) is None:
            return False
        self._set(uid, (condition for condition in self.conditions(uid) if condition.type != type))
        return True

    def _set(self, uid: str, conditions: Iterable[PodCondition]) -> None:
        ordered = tuple(sorted(conditions, key=lambda condition: condition.type != PENDING))
        self._put(uid, msgspec.structs.replace(self.resources(uid), conditions=ordered))


def updated_resize_condition(
    type: str, old: PodCondition | None, reason: str, message: str, generation: int, now: str
) -> PodCondition | None:
    """status_manager.go, updatedPodResizeCondition; None when nothing changes."""
    if old is not None and (old.reason, old.message, old.observed_generation) == (reason, message, generation):
        return None
    since = old.last_transition_time if old is not None and old.reason == reason else now
    return PodCondition(
        type=type,
        status="True",
        reason=reason,
        message=message,
        observed_generation=generation,
        last_probe_time=now,
        last_transition_time=since,
    )


def sort_pending_resizes(pods: Mapping[str, PendingPod]) -> list[str]:
    """UIDs (sortPendingResizes): first those that ask for no more, then by priority, Guaranteed before others, then
    those that have waited longest."""

    def place(uid: str) -> tuple[object, ...]:
        pod = pods[uid]
        if not is_resize_increasing_requests(pod.before, pod.after):
            return (False,)
        is_other = (pod.qos or compute_pod_qos(pod.after)) != _GUARANTEED
        return True, -pod_priority(pod.after), is_other, not pod.since, pod.since

    return sorted(pods, key=place)
