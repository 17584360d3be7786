"""Source ``api``: the pods that a cluster has bound to this node, and the objects that they refer to.

Mirrors pkg/kubelet/config/apiserver.go: the source states its whole set again and again, from the first moment at which
the server's list was read to its end. Until then it states nothing, so that what a checkpoint has restored stays.
"""

from __future__ import annotations

import asyncio
from typing import assert_never

from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.podobjects.config_objects import ObjectKey, object_key
from ipc.link.messages.cluster import (
    ObjectStated,
    ObjectWithdrawn,
    PodsListed,
    PodStated,
    PodWithdrawn,
    ReferencesRead,
)
from supervisor.protocol.manifests import ManifestObject, ManifestPod, SourceSnapshot

ApiChange = PodStated | ReferencesRead | PodWithdrawn | PodsListed | ObjectStated | ObjectWithdrawn


class _Set:
    """Pods and objects of one life of the process that reads them."""

    def __init__(self) -> None:
        self.pods: dict[str, ManifestPod] = {}
        """By UID."""
        self.objects: dict[ObjectKey, ManifestObject] = {}
        self.incomplete: set[str] = set()
        """UIDs of the pods of which not everything that they refer to was read."""

    def take(self, change: PodStated | ReferencesRead | PodWithdrawn | ObjectStated | ObjectWithdrawn) -> None:
        match change:
            case PodStated(pod=pod, awaits=awaits):
                self.pods[pod.metadata.uid] = ManifestPod(pod=pod)
                if awaits:
                    self.incomplete.add(pod.metadata.uid)
                else:
                    self.incomplete.discard(pod.metadata.uid)
            case ReferencesRead(uid=uid):
                self.incomplete.discard(uid)
            case PodWithdrawn(uid=uid):
                self.pods.pop(uid, None)
                self.incomplete.discard(uid)
            case ObjectStated(object=found):
                self.objects[object_key(found)] = ManifestObject(object=found)
            case ObjectWithdrawn(kind=kind, namespace=namespace, name=name):
                self.objects.pop(ObjectKey(kind, namespace, name), None)
            case _:
                assert_never(change)


class ApiSource:
    """The newest complete set, and the one that is being read."""

    def __init__(self) -> None:
        self._listed = _Set()
        self._reading: _Set | None = _Set()
        """None: the set is complete, and every change is one of it."""
        self._changed = asyncio.Event()
        self._was_listed = False

    def begin(self) -> None:
        """The process that reads the cluster begins anew: what it states is a new set, when that was listed."""
        self._reading = _Set()

    def take(self, change: ApiChange) -> None:
        """Note a change of the set that is being read, or of the complete one."""
        if isinstance(change, PodsListed):
            self._listed, self._reading = self._reading or self._listed, None
            self._was_listed = True
        else:
            (self._reading or self._listed).take(change)
        if self._reading is None:
            self._changed.set()

    async def changed(self) -> SourceSnapshot:
        """The whole set, when anything of it has changed since the last time. What changes at once is one snapshot."""
        await self._changed.wait()
        self._changed.clear()
        return self.snapshot()

    def take_listed(self) -> bool:
        """Whether the set was listed since the last time that this was asked."""
        was_listed, self._was_listed = self._was_listed, False
        return was_listed

    def snapshot(self) -> SourceSnapshot:
        """The newest complete set."""
        return SourceSnapshot(
            source=API_SOURCE,
            pods=tuple(self._listed.pods.values()),
            objects=tuple(self._listed.objects.values()),
            complete=True,
            incomplete_pods=frozenset(self._listed.incomplete),
        )
