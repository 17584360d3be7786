"""The agent's v1 Events: counted, combined, bounded (client-go tools/record, events_cache.go).

Two reports are the same event when object, field path, type, reason and message agree; then only count and last
timestamp move, which is what `kubectl get events` shows as ``x3 over 10s``. Of events of one object that differ in
their message alone, the tenth and every further one within ten minutes become one: ``(combined from similar events):``
and the newest message.

Different on purpose:

- no spam filter. Upstream drops an object's new events (burst 25, then one in five minutes) to protect an API server;
  this history is our own and bounded. What needs protection is the history of all others, so an object with too many
  events loses its own oldest, and what happens now is never kept back. When all together are too many, the namespace
  that has the most loses its longest unseen one: a load test does not push out the history of anybody else's pods;
- events of the node are not combined: they are about files and directories, which have no object of their own, and
  who reads that a tenth manifest is wrong wants to know which;
- a pod that is gone and stated again has its UID again, but no events of the one before: they are told apart by when a
  pod was first seen here;
- the first nine messages of similar events go on being counted on their own (upstream: any nine).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

import msgspec

from ipc.host.clock import parse_rfc3339, rfc3339
from ipc.host.text.safe_text import MAX_EVENT_BYTES, safe_text
from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.api.v1.event import Event, EventSource
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventType
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from supervisor.record.packed_events import PackedEvents, pack, unpack

COMPONENT: Final = "rootlet"
NODE: Final = "Node"
"""Kind of the object of an event that is not about a pod."""
MAX_SIMILAR: Final = 10
"""So many different messages of one object and reason are not kept apart any more (defaultAggregateMaxEvents)."""
SIMILAR_INTERVAL_S: Final = 600.0
"""Without a similar event for so long, counting them begins anew (defaultAggregateIntervalInSeconds)."""
MAX_SIMILAR_GROUPS: Final = 4096
"""Most objects with their reasons of which similar events are counted (maxLruCacheEntries)."""
COMBINED: Final = "(combined from similar events): "
MAX_EVENTS_PER_OBJECT: Final = 100
"""Most events of one object. A pod of ten containers has some forty when it starts."""

_RECORDED: Final = {type: METERS.counter(metrics.EVENTS, type) for type in EventType}
T = TypeVar("T")


class _Group(NamedTuple):
    """Fields that similar events have in common (EventAggregatorByReasonFunc; source and reporter are always
    ourselves)."""

    kind: str
    uid: str
    namespace: str
    name: str
    type: str
    reason: str
    first_seen: str
    """Annotation CONFIG_SEEN of the pod: it tells pods of that UID apart."""


class _Key(NamedTuple):
    """Fields that make an event the same one (getEventKey). A combined event has COMBINED for its message."""

    group: _Group
    field_path: str = ""
    message: str = ""

    @property
    def object(self) -> tuple[str, str, str, str]:
        return self.group[:4]


class _Entry(NamedTuple):
    packed: bytes
    name: str
    object: int
    """Hash of the object that it tells of."""
    namespace: str
    wall: float
    """When it was seen last."""
    sequence: int
    """Place of the record in the order of all records."""


class _Similar(NamedTuple):
    messages: tuple[int, ...]
    """Hashes of the different ones, MAX_SIMILAR at the most."""
    wall: float


class EventRecorder:
    """At most ``max_events`` events, none older than ``ttl_s`` seconds. The longest unseen go first: when they are too
    many, those of the namespace with the most."""

    def __init__(self, node_name: str, max_events: int, ttl_s: float) -> None:
        self._node_name = node_name
        self._max_events = max_events
        self._ttl_s = ttl_s
        self._events: dict[int, _Entry] = {}
        """Longest unseen first, by the hash of the key. Words of keys, objects and groups would be most of what a
        thousand events take."""
        self._of_object: dict[int, dict[int, None]] = {}
        """Keys of events by the hash of their object, longest unseen first."""
        self._of_namespace: dict[str, dict[int, None]] = {}
        """Keys of events by namespace; the node's own have that of the objects that they tell of, or the default
        one."""
        self._similar: dict[int, _Similar] = {}
        """By the hash of the group, longest unseen first."""
        self._sequence = 0
        self._source = EventSource(component=COMPONENT, host=node_name)

    # --- what happens ---

    def record(self, report: EventReport, wall: float, first_seen: str = "") -> tuple[Event, list[str]]:
        """The new state of its event, and the names of events that had to go. ``first_seen``: annotation CONFIG_SEEN of
        the pod, which the event has then, too; empty for what is no pod, and for one whose manifest is not known."""
        _RECORDED[report.type].inc()
        seen_at = report.wall or wall
        message = safe_text(report.message, MAX_EVENT_BYTES)
        key = self._correlate(_key_of_report(report, message, first_seen), seen_at)
        text = f"{COMBINED}{message}" if key.message == COMBINED else message
        event = self._counted(key, report, text, seen_at)
        self._sequence += 1
        of = self._put(key, event, seen_at, self._sequence)
        return event, self._shrink(of) + self.expire(wall)

    def expire(self, wall: float) -> list[str]:
        """Names of the events that are too old, or too many by now; they are gone."""
        while self._similar and wall - next(iter(self._similar.values())).wall > SIMILAR_INTERVAL_S:
            del self._similar[next(iter(self._similar))]
        gone = []
        while self._events:
            key, entry = next(iter(self._events.items()))
            if wall - entry.wall <= self._ttl_s:
                break
            gone.append(self._take(key))
        while len(self._events) > self._max_events:
            most = max(self._of_namespace.values(), key=len)
            gone.append(self._take(next(iter(most))))
        return gone

    def resize(self, max_events: int, ttl_s: float) -> None:
        """Takes effect with the next `expire` or `record`."""
        self._max_events, self._ttl_s = max_events, ttl_s

    # --- what is kept over a restart ---

    @property
    def sequence(self) -> int:
        """Rises with every record."""
        return self._sequence

    def events(self) -> PackedEvents:
        """Longest unseen first."""
        return PackedEvents(entry.packed for entry in self._events.values())

    def changed_after(self, sequence: int) -> PackedEvents:
        """Events that were recorded after that point, each as it is now, longest unseen first."""
        newest_first = itertools.takewhile(lambda entry: entry.sequence > sequence, reversed(self._events.values()))
        return PackedEvents(entry.packed for entry in newest_first)[::-1]

    def packed(self) -> dict[str, bytes]:
        """Every event by its name."""
        return {entry.name: entry.packed for entry in self._events.values()}

    def restore(self, events: Iterable[Event], wall: float) -> None:
        """Go on where an earlier agent has ended. Longest unseen first, with valid time stamps.

        One that was seen in the future (the clock was set back since) counts as seen now.
        """
        for event in events:
            key = _key_of_event(event)
            seen_at = min(parse_rfc3339(event.last_timestamp or ""), wall)
            if key.message != COMBINED:
                self._correlate(key, seen_at)
            self._shrink(self._put(key, event, seen_at, 0))
        self.expire(wall)

    # --- parts ---

    def _correlate(self, key: _Key, wall: float) -> _Key:
        """The event that this one counts for: itself, or the combined one of its group (EventAggregate)."""
        if key.group.kind == NODE:
            return key
        group, message = hash(key.group), hash(key.message)
        similar = self._similar.pop(group, None)
        messages = similar.messages if similar is not None and wall - similar.wall <= SIMILAR_INTERVAL_S else ()
        known = message in messages
        own = known or len(messages) + 1 < MAX_SIMILAR
        self._similar[group] = _Similar((*messages, message) if own and not known else messages, wall)
        if len(self._similar) > MAX_SIMILAR_GROUPS:
            del self._similar[next(iter(self._similar))]
        return key if own else _Key(key.group, message=COMBINED)

    def _counted(self, key: _Key, report: EventReport, message: str, seen_at: float) -> Event:
        at, old = rfc3339(seen_at), self._events.get(hash(key))
        if old is None:
            suffix = f"{round(seen_at * 1e9) + self._sequence:x}"  # upstream's, and events of one moment are several
            return self._new(key, report, message, at, suffix)
        event = unpack(old.packed)
        return msgspec.structs.replace(event, count=event.count + 1, last_timestamp=at, message=message)

    def _new(self, key: _Key, report: EventReport, message: str, at: str, suffix: str) -> Event:
        group = key.group
        return Event(
            metadata=ObjectMeta(
                name=f"{group.name}.{suffix}",
                namespace=group.namespace,
                creation_timestamp=at,
                annotations={**report.annotations, **({CONFIG_SEEN: group.first_seen} if group.first_seen else {})},
            ),
            involved_object=ObjectReference(
                api_version="v1",
                kind=group.kind,
                namespace=group.namespace,
                name=group.name,
                uid=group.uid,
                field_path=report.field_path,
            ),
            reason=group.reason,
            message=message,
            type=group.type,
            source=self._source,
            first_timestamp=at,
            last_timestamp=at,
            count=1,
            reporting_component=COMPONENT,
            reporting_instance=self._node_name,
        )

    def _put(self, key: _Key, event: Event, wall: float, sequence: int) -> int:
        """As the newest one; the hash of its object."""
        of, namespace, at = hash(key.object), key.group.namespace, hash(key)
        for keys in (self._of_object.setdefault(of, {}), self._of_namespace.setdefault(namespace, {})):
            keys.pop(at, None)
            keys[at] = None
        self._events.pop(at, None)
        self._events[at] = _Entry(pack(event), event.metadata.name, of, namespace, wall, sequence)
        return of

    def _take(self, at: int) -> str:
        """Out of the history; its name."""
        entry = self._events.pop(at)
        _drop(self._of_object, entry.object, at)
        _drop(self._of_namespace, entry.namespace, at)
        return entry.name

    def _shrink(self, of: int) -> list[str]:
        """Names of the object's events that are too many; they are gone."""
        excess = len(self._of_object[of]) - MAX_EVENTS_PER_OBJECT
        return [self._take(next(iter(self._of_object[of]))) for _ in range(excess)]


def _drop(keys: dict[T, dict[int, None]], of: T, at: int) -> None:
    del keys[of][at]
    if not keys[of]:
        del keys[of]


def _key_of_report(report: EventReport, message: str, first_seen: str) -> _Key:
    kind = report.kind or ("Pod" if report.uid else NODE)
    namespace = report.namespace or "default"
    group = _Group(kind, report.uid, namespace, report.name, report.type, report.reason, first_seen)
    return _Key(group, report.field_path, message)


def _key_of_event(event: Event) -> _Key:
    of = event.involved_object
    first_seen = event.metadata.annotations.get(CONFIG_SEEN, "")
    group = _Group(of.kind, of.uid, of.namespace, of.name, event.type, event.reason, first_seen)
    if event.message.startswith(COMBINED):
        return _Key(group, message=COMBINED)
    return _Key(group, of.field_path, event.message)
