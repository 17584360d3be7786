"""The informer's copy of what the master knows: objects by key, and a window of their newest changes. No I/O, no clock.

A watch is nothing but a position in that window (client-go calls it a resourceVersion). So a slow client costs no
memory: when its position has left the window it is told so and lists again.
"""

from __future__ import annotations

import enum
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar, assert_never

import msgspec

from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.link.messages.api_server import (
    AgentChanged,
    EventChanged,
    EventGone,
    FeedMessage,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from workers.api_server.store.objects import (
    StoredObject,
    WatchedObject,
    config_object,
    config_object_key,
    event_object,
    pod_object,
)

MAX_WINDOW_CHANGES: Final = 512
"""Most changes of one kind that can still be resumed from: of the pods at full speed those of some ten seconds. Who
was away longer lists again, which costs less than to keep more."""
MAX_WINDOW_BYTES: Final = 512 * 1024
"""Most bytes of JSON that one kind's window holds on to."""

M = TypeVar("M", PodChanged, EventChanged, ObjectChanged)
Wanted = Callable[[WatchedObject[M]], bool]


class ChangeType(enum.StrEnum):
    """apimachinery pkg/watch, EventType."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, Generic[M], frozen=True):
    """One step of one object. A deleted object is shown as it was last, under the resourceVersion of its deletion."""

    resource_version: int
    previous: WatchedObject[M] | None
    current: WatchedObject[M]
    deleted: bool = False


class Expired(Exception):
    """The position lies before the window, or was given out by another life of the agent."""


_SEEN_AS: Final[Mapping[tuple[bool, bool], ChangeType | None]] = {
    (False, False): None,
    (False, True): ChangeType.ADDED,
    (True, True): ChangeType.MODIFIED,
    (True, False): ChangeType.DELETED,
}
"""(matched before, matches now) -> what a watcher with a selector is told (apiserver storage/cacher, cacheWatcher)."""


def seen_as(change: Change[M], wanted: Wanted[M]) -> ChangeType | None:
    """How a watcher who wants only some objects sees a change; None when it does not concern it."""
    before = change.previous is not None and wanted(change.previous)
    return _SEEN_AS[before, not change.deleted and wanted(change.current)]


class ObjectStore(Generic[M]):
    """All objects of one kind. ``resource_version`` rises from call to call once ``forget_changes`` was called."""

    def __init__(
        self,
        encode: Callable[[M, int], StoredObject[M]],
        *,
        max_changes: int = MAX_WINDOW_CHANGES,
        max_bytes: int = MAX_WINDOW_BYTES,
    ) -> None:
        self._encode: Callable[[M, int], StoredObject[M]] = encode
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        self._objects: dict[str, StoredObject[M]] = {}
        self._window: deque[Change[M]] = deque()
        self._window_bytes = 0
        self._floor = 0
        """Nothing at or before this resourceVersion can be resumed from, except this very one."""

    def change(self, message: M, resource_version: int) -> None:
        """An object was added, or is now like this."""
        previous, current = self.replay(message, resource_version)
        self._remember(Change(resource_version, previous and previous.watched(), current.watched()))

    def replay(self, message: M, resource_version: int) -> tuple[StoredObject[M] | None, StoredObject[M]]:
        """The object is like this, which is no news: what was known of it, and what is now."""
        current = self._encode(message, resource_version)
        previous = self._objects.get(current.key)
        self._objects[current.key] = current
        return previous, current

    def remove(self, key: str, resource_version: int) -> None:
        """The object is gone. Unknown keys are ignored."""
        last = self._objects.pop(key, None)
        if last is not None:
            tombstone = self._encode(last.message, resource_version)
            self._remember(Change(resource_version, last.watched(), tombstone.watched(), deleted=True))

    def forget_changes(self, resource_version: int) -> None:
        """From here on the window is complete: what came before was a replay of the present, not its history."""
        self._window.clear()
        self._window_bytes = 0
        self._floor = resource_version

    def select(self, wanted: Wanted[M]) -> list[StoredObject[M]]:
        """Return the objects of a namespace, or the one of a name."""
        return sorted(filter(wanted, self._objects.values()), key=lambda found: (found.namespace, found.name))

    def find(self, namespace: str, name: str) -> StoredObject[M] | None:
        """The object of that name; of two (the older one is terminating) the newer."""
        found = [o for o in self._objects.values() if o.name == name and o.namespace == namespace]
        return max(found, key=lambda o: (not o.terminating, o.resource_version), default=None)

    def get(self, key: str) -> StoredObject[M] | None:
        return self._objects.get(key)

    def namespaces(self) -> set[str]:
        return {found.namespace for found in self._objects.values()}

    def changes_after(self, resource_version: int, limit: int) -> list[Change[M]]:
        """The next ``limit`` changes after that position. Raises Expired."""
        if resource_version < self._floor:
            raise Expired(f"too old resource version: {resource_version} ({self._floor})")
        newer = list(itertools.takewhile(lambda c: c.resource_version > resource_version, reversed(self._window)))
        newer.reverse()
        return newer[:limit]

    def _remember(self, change: Change[M]) -> None:
        self._window.append(change)
        self._window_bytes += len(change.current.json)
        while len(self._window) > self._max_changes or self._window_bytes > self._max_bytes:
            dropped = self._window.popleft()
            self._window_bytes -= len(dropped.current.json)
            self._floor = dropped.resource_version


class Store:
    """Everything the API server answers from.

    Its resourceVersions are the master's plus ``epoch``, a number that no earlier life of the API server can have
    reached (microseconds since 1970 when this one began). So a position from an earlier life is always before the
    window, however much was missed, and its owner lists again.
    """

    def __init__(self, epoch: int) -> None:
        self.pods: ObjectStore[PodChanged] = ObjectStore(pod_object)
        self.events: ObjectStore[EventChanged] = ObjectStore(event_object)
        self.config_objects: Mapping[ObjectKind, ObjectStore[ObjectChanged]] = {
            kind: ObjectStore(config_object) for kind in ObjectKind
        }
        self.agent: AgentChanged | None = None
        self.synced = False
        """Everything that existed has arrived."""
        self.resource_version = epoch
        """The highest seen of any kind; what lists carry, and where their watches begin."""
        self._epoch = epoch

    def take(self, message: FeedMessage) -> None:
        """One message of the feed."""
        match message:
            case PodChanged():
                take = self.pods.change if self.synced else self.pods.replay
                take(message, self._version(message.resource_version))
            case PodGone():
                self.pods.remove(message.uid, self._version(message.resource_version))
            case EventChanged():
                self.events.change(message, self._version(message.resource_version))
            case EventGone():
                self.events.remove(message.name, self._version(message.resource_version))
            case ObjectChanged():
                objects = self.config_objects[message.summary.kind]
                objects.change(message, self._version(message.resource_version))
            case ObjectGone():
                key = config_object_key(message.namespace, message.name)
                self.config_objects[message.kind].remove(key, self._version(message.resource_version))
            case AgentChanged():
                self.agent = message
            case FeedSynced():
                self.pods.forget_changes(self.resource_version)
                self.events.forget_changes(self.resource_version)
                for config_objects in self.config_objects.values():
                    config_objects.forget_changes(self.resource_version)
                self.synced = True
            case _:
                assert_never(message)

    def namespaces(self) -> set[str]:
        """Names of all namespaces that something is in."""
        beside = (objects.namespaces() for objects in self.config_objects.values())
        return self.pods.namespaces().union(self.events.namespaces(), *beside) - {""}

    def _version(self, resource_version: int) -> int:
        version = self._epoch + resource_version
        self.resource_version = max(self.resource_version, version)
        return version
