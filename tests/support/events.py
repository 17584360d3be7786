"""Events of one pod, as the event log keeps them."""

from __future__ import annotations

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.link.messages.event_reasons import EventType

WALL = 1_800_000_000.0


def event(name: str, count: int = 1, message: str = "m") -> Event:
    at = rfc3339(WALL)
    return Event(
        metadata=ObjectMeta(name=name, namespace="default", creation_timestamp=at),
        involved_object=ObjectReference(kind="Pod", namespace="default", name="p", uid="u"),
        reason="R",
        message=message,
        type=EventType.NORMAL,
        first_timestamp=at,
        last_timestamp=at,
        count=count,
    )
