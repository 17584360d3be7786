"""The agent's v1 Events: counted, aggregated, bounded (client-go tools/record, events_cache.go).

Two reports are the same event when object, field path, type, reason and message agree; then only count and last
timestamp move, which is what `kubectl get events` shows as ``x3 over 10s``.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict

import msgspec

from ipc.api import Event, EventSource, ObjectMeta, ObjectReference
from ipc.clock import parse_rfc3339, rfc3339
from ipc.messages import EventReport

COMPONENT = "rootlet"
MAX_MESSAGE_BYTES = 1024
"""As upstream cuts an event's message."""

_Key = tuple[str, str, str, str, str, str, str]


class EventRecorder:
    """At most ``max_events`` events, none older than ``ttl_s`` seconds; the longest unseen go first."""

    def __init__(self, node_name: str, max_events: int, ttl_s: float) -> None:
        self._node_name = node_name
        self._max_events = max_events
        self._ttl_s = ttl_s
        self._events: OrderedDict[_Key, Event] = OrderedDict()

    def record(self, report: EventReport, wall: float) -> tuple[Event, list[str]]:
        """The new state of its event, and the names of events that had to go."""
        message = report.message[:MAX_MESSAGE_BYTES]
        kind = "Pod" if report.uid else "Node"
        key = (kind, report.uid, report.namespace, report.name, report.field_path, report.reason, message)
        old = self._events.pop(key, None)
        at = rfc3339(report.wall or wall)
        if old is None:
            event = self._new(key, report, at)
        else:
            event = msgspec.structs.replace(old, count=old.count + 1, last_timestamp=at)
        self._events[key] = event
        return event, self._expire(wall)

    def resize(self, max_events: int, ttl_s: float) -> None:
        """Takes effect with the next event."""
        self._max_events, self._ttl_s = max_events, ttl_s

    def events(self) -> tuple[Event, ...]:
        """Longest unseen first."""
        return tuple(self._events.values())

    def _new(self, key: _Key, report: EventReport, at: str) -> Event:
        kind, uid, namespace, name, field_path, reason, message = key
        namespace = namespace or "default"
        suffix = f"{zlib.crc32(repr((key, at)).encode()):08x}"
        return Event(
            metadata=ObjectMeta(name=f"{name}.{suffix}", namespace=namespace, creation_timestamp=at),
            involved_object=ObjectReference(
                api_version="v1", kind=kind, namespace=namespace, name=name, uid=uid, field_path=field_path
            ),
            reason=reason,
            message=message,
            type=report.type,
            source=EventSource(component=COMPONENT, host=self._node_name),
            first_timestamp=at,
            last_timestamp=at,
            count=1,
            reporting_component=COMPONENT,
            reporting_instance=self._node_name,
        )

    def _expire(self, wall: float) -> list[str]:
        gone = []
        for key, event in list(self._events.items()):
            old = wall - parse_rfc3339(event.last_timestamp or "") > self._ttl_s
            if not old and len(self._events) <= self._max_events:
                break
            del self._events[key]
            gone.append(event.metadata.name)
        return gone
