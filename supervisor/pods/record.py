"""The record that the sync loop keeps of one pod: its desired state, its worker, its phase machine."""

from __future__ import annotations

import math
from zlib import crc32

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.probe_results import probes_of
from ipc.k8s.podobjects.config_objects import ObjectRef, referenced_objects
from supervisor.pods.lifecycle import MAX_RESTS, PodLifecycle
from supervisor.pods.next_step import Wait
from supervisor.pods.parts import PodParts


def _references(pod: Pod | None) -> frozenset[ObjectRef]:
    return referenced_objects(pod) if pod is not None else frozenset()


def _is_probed(pod: Pod | None) -> bool:
    return pod is not None and any(map(probes_of, (*pod.spec.init_containers, *pod.spec.containers)))


def head_start(uid: str) -> int:
    """How many fewer periodic syncs are passed over before a pod's first one: by its UID, so that pods that have
    started together are not all synced together ever after. (The first one is nobody's later for it.)"""
    return crc32(uid.encode()) % (MAX_RESTS + 1)


class PodRecord:
    """Entry of the pod table. Only its own methods change its attributes; owners replace its parts."""

    def __init__(self, uid: str, name: str, pod: Pod | None, source: str, slot: int, row: int, parts: PodParts) -> None:
        """``pod``: None for an orphan. ``name``: namespace and name."""
        self.uid = uid
        self.name = name
        self.source = source
        self.slot = slot
        """The pod worker that owns it."""
        self.row = row
        """Row of the pod on the board."""
        self.parts = parts
        """All else that is known of it: each part has an owner of its own."""
        self.references = _references(pod)
        """The ConfigMaps and Secrets that it refers to."""
        self.all_references = self.references
        """ConfigMaps and Secrets that the pod has referred to since it is known here: its containers may still have
        them."""
        self.successor: Pod | None = None
        """Wanted again under the same UID while it is still going down (PW-08)."""
        self.is_probed = _is_probed(pod)
        """Whether its manifest has a probe."""
        self.lifecycle = PodLifecycle(pod, head_start(uid))
        self._desired: Pod | None = None
        self.quiet_at = math.inf
        """When the pod is quiet, monotonic seconds: nothing has happened to it for a while, so that it costs its worker
        a sync now and then. Infinite: the next tick says when; negative: it is quiet."""

    @property
    def pod(self) -> Pod | None:
        """Desired pod, with the resources that it was allocated; None for an orphan."""
        return self.lifecycle.pod

    @property
    def stated(self) -> Pod | None:
        """Desired pod, with the resources that its source states."""
        return self._desired or self.lifecycle.pod

    def state(self, pod: Pod) -> None:
        """The pod as its source states it: the desired pod, but for its resources."""
        self._desired = pod if pod is not self.lifecycle.pod else None

    def update(self, pod: Pod) -> None:
        """A newer desired pod, or other resources for it."""
        self._desired = None
        self.references = _references(pod)
        self.all_references |= self.references
        self.is_probed = _is_probed(pod)
        self.lifecycle.update(pod)

    @property
    def wait(self) -> Wait | None:
        """For what something that is due was not done, when that was last tried."""
        return self.parts.hold_up.wait

    @property
    def reported_wait(self) -> str:
        """Reason of the wait, as it is reported."""
        return self.parts.hold_up.reported

    def succeed(self, pod: Pod, source: str) -> None:
        """Have that pod begin when nothing of this one is left."""
        self.successor, self.source = pod, source

    def drop_successor(self) -> None:
        """Have nothing follow this pod."""
        self.successor = None

    def clear(self) -> None:
        """The pod is gone: nothing that is still to be done for it is."""
        self.parts = PodParts()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has happened to the pod for a while."""
        return self.quiet_at < 0.0

    def is_quiet_from(self, mono: float) -> None:
        """The pod is quiet from then on."""
        self.quiet_at = mono

    def move(self, slot: int) -> None:
        """Assign the pod to another pod worker."""
        self.slot = slot
