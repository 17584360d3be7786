"""Feed of the API server: an informer's list and watch, seen from the server's side.

Keeps the last message per object, so that a new incarnation of the API server gets everything again, and drops a
message that says nothing new. Versions begin anew with each start of the agent; what clients see as resourceVersion
does not fall even so, because the API server adds when it was born (`workers.api_server.store.store`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ipc.k8s.api.v1.event import Event
from ipc.k8s.podobjects.config_objects import ObjectKey
from ipc.link.messages.api_server import (
    EventChanged,
    EventGone,
    FeedMessage,
    FeedReplay,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    ObjectSummary,
    PackedEventChanged,
    PodChanged,
    PodGone,
)


class Feed:
    """Versions and the newest message of every pod, event, ConfigMap and Secret."""

    def __init__(self, events: Callable[[], Mapping[str, bytes]]) -> None:
        """``events``: all of them as they are now, by name, packed."""
        self._version = 0
        self._pods: dict[str, PodChanged] = {}
        """As the API server has them: the feed's own store, of pods as of events and objects."""
        self._packed_events = events
        self._events: dict[str, int] = {}
        """Version of each, by its name."""
        self._objects: dict[ObjectKey, ObjectChanged] = {}

    def pod(self, message: PodChanged) -> list[FeedMessage]:
        """``message.resource_version`` is ours to give."""
        uid = message.pod.metadata.uid
        old = self._pods.get(uid)
        if old is not None and _is_same(old, message):
            return []
        self._pods[uid] = msgspec.structs.replace(message, resource_version=self._next())
        return [self._pods[uid]]

    def pod_gone(self, uid: str) -> list[FeedMessage]:
        if self._pods.pop(uid, None) is None:
            return []
        return [PodGone(resource_version=self._next(), uid=uid)]

    def event(self, event: Event, gone: Iterable[str] = ()) -> list[FeedMessage]:
        """New state of an event, and the events that were dropped for it."""
        version = self._events[event.metadata.name] = self._next()
        return [EventChanged(resource_version=version, event=event), *self.events_gone(gone)]

    def events_gone(self, names: Iterable[str]) -> list[FeedMessage]:
        known = [name for name in names if self._events.pop(name, None) is not None]
        return [EventGone(resource_version=self._next(), name=name) for name in known]

    def object(self, summary: ObjectSummary) -> list[FeedMessage]:
        """A ConfigMap or Secret as it is now."""
        key = ObjectKey(summary.kind, summary.metadata.namespace, summary.metadata.name)
        old = self._objects.get(key)
        if old is not None and old.summary == summary:
            return []
        self._objects[key] = ObjectChanged(resource_version=self._next(), summary=summary)
        return [self._objects[key]]

    def object_gone(self, key: ObjectKey) -> list[FeedMessage]:
        if self._objects.pop(key, None) is None:
            return []
        return [ObjectGone(resource_version=self._next(), kind=key.kind, namespace=key.namespace, name=key.name)]

    def everything(self) -> list[FeedReplay]:
        """Newest message of every object, for an API server that was just started."""
        packed = self._packed_events()
        events = [
            PackedEventChanged(resource_version=version, event=msgspec.Raw(packed[name]))
            for name, version in self._events.items()
            if name in packed
        ]
        return [*self._pods.values(), *events, *self._objects.values(), FeedSynced()]

    def _next(self) -> int:
        self._version += 1
        return self._version


def _is_same(old: PodChanged, new: PodChanged) -> bool:
    """Apart from its number and from when it was seen."""
    return msgspec.structs.replace(new, resource_version=old.resource_version, observed_at=old.observed_at) == old
