"""Admission of syncs by the objects that they carry. Pure state.

Two things make it wait. The objects that a worker's syncs hold at a time have a maximum: a thousand pods that refer to
a large ConfigMap would be more than its link takes at once. And right after a start a pod waits a moment for sources
that were not read yet, so that no object is reported missing which is only late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.link.messages.pod_worker import WorkType
from ipc.link.messages.wait_reasons import WaitReason
from supervisor.managers.object_store import ObjectStore, PodObjects
from supervisor.pods.parts import NO_LOAD, Load
from supervisor.pods.record import PodRecord

MAX_WORKER_BYTES: Final = 16 << 20
"""Most that the syncs in flight of one worker hold of objects, in bytes: half of what may wait in its link. One sync
alone always goes."""
SOURCES_PATIENCE_S: Final = 10.0
"""How long pods wait for sources that were not read yet. A source that stays unreadable for longer holds up nothing."""

NOTHING: Final = PodObjects()


class ObjectDelivery:
    """Bytes of objects in flight by worker, and the pods that wait for room or for sources."""

    def __init__(
        self,
        store: ObjectStore,
        claims_of: Callable[[PodRecord], Mapping[str, PodClaim]] = lambda _: {},
        values_of: Callable[[str], ClusterValues | None] = lambda _: None,
    ) -> None:
        """``claims_of``: a pod's claims that have documents, by name; ``values_of``: what a cluster gives to the pod of
        a UID beside objects."""
        self._store = store
        self._values_of = values_of
        self._claims_of = claims_of
        self._loaded: dict[int, int] = {}
        """Slot -> bytes of all its syncs."""
        self._waiting: dict[int, set[str]] = {}
        """Slot -> UIDs of the pods for which it had no room."""
        self._early: list[str] = []
        """UIDs of the pods that have asked before the sources were read."""
        self._patient_until: float | None = None
        """Monotonic time; None before the first pod has asked."""

    def load(self, state: PodRecord, now: Instant) -> PodObjects | WaitReason:
        """Objects that go along with the sync that goes out now, or what it has to wait for."""
        if state.pod is None or state.lifecycle.phase is not WorkType.SYNC:
            return NOTHING
        cluster = self._values_of(state.uid)
        if not state.references:
            return NOTHING if cluster is None else PodObjects(objects=ConfigObjects(cluster=cluster))
        found = self._store.of_pod(state.pod.metadata.namespace, state.references)
        if found.unread and self._is_patient(now):
            self._early.append(state.uid)
            return WaitReason.SOURCES
        if not self._has_room(state.slot, found.size_bytes):
            self._waiting.setdefault(state.slot, set()).add(state.uid)
            return WaitReason.ROOM
        self._take_room(state, found.size_bytes)
        objects = msgspec.structs.replace(found.objects, claims=self._claims_of(state), cluster=cluster)
        return msgspec.structs.replace(found, objects=objects)

    def load_anew(self, state: PodRecord) -> ConfigObjects:
        """Objects for the sync in flight, as they are now, in place of those that went along. It does not wait for
        room: it has some already, and others would wait for its end."""
        if state.pod is None:
            return NOTHING.objects
        found = self._store.of_pod(state.pod.metadata.namespace, state.references)
        self._give_room_back(state)
        self._take_room(state, found.size_bytes)
        return msgspec.structs.replace(found.objects, claims=self._claims_of(state), cluster=self._values_of(state.uid))

    def _take_room(self, state: PodRecord, size_bytes: int) -> None:
        state.parts.load = Load(state.slot, size_bytes)
        self._loaded[state.slot] = self._loaded.get(state.slot, 0) + size_bytes

    def _give_room_back(self, state: PodRecord) -> Load:
        load, state.parts.load = state.parts.load, NO_LOAD
        if load.size_bytes:
            self._loaded[load.slot] -= load.size_bytes
        return load

    def unload(self, state: PodRecord) -> Collection[str]:
        """The sync of that pod is over, if there was one; the pods that have waited for its room."""
        load = self._give_room_back(state)
        return self._waiting.pop(load.slot, ()) if load.size_bytes else ()

    def take_early(self) -> Collection[str]:
        """UIDs of the pods that wait for the sources; they ask again."""
        early, self._early = self._early, []
        return early

    def _is_patient(self, now: Instant) -> bool:
        if self._patient_until is None:
            self._patient_until = now.mono + SOURCES_PATIENCE_S
        return now.mono < self._patient_until

    def _has_room(self, slot: int, size_bytes: int) -> bool:
        loaded = self._loaded.get(slot, 0)
        return not size_bytes or not loaded or loaded + size_bytes <= MAX_WORKER_BYTES
