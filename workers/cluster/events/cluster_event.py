"""A v1 Event as the kubelet sends it, made of the agent's own. Pure.

The agent's recorder has counted and combined it already, under a name that does not change: so the same event is made
once and patched from then on (client-go tools/record, event.go, recordEvent).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.api.v1.event import Event

COMPONENT: Final = "kubelet"
"""The component that tools and tests of a cluster select a node's events by."""
NODE: Final = "Node"
NODES_NAMESPACE: Final = "default"
"""Namespace of events about what has none."""


def event_body(event: Event, node_name: str) -> bytes:
    """JSON of the Event."""
    of = event.involved_object
    annotations = {key: value for key, value in event.metadata.annotations.items() if key != CONFIG_SEEN}
    reference: dict[str, str] = {
        "kind": of.kind,
        "namespace": "" if of.kind == NODE else of.namespace,
        "name": of.name,
        "uid": of.uid,
        "apiVersion": of.api_version,
        "fieldPath": of.field_path,
    }
    return msgspec.json.encode(
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": event.metadata.name,
                "namespace": namespace_of(event),
                **({"annotations": annotations} if annotations else {}),
            },
            "involvedObject": {name: value for name, value in reference.items() if value},
            "reason": event.reason,
            "message": event.message,
            "source": {"component": COMPONENT, "host": node_name},
            "firstTimestamp": event.first_timestamp,
            "lastTimestamp": event.last_timestamp,
            "count": event.count,
            "type": event.type,
            "eventTime": None,
            "reportingComponent": COMPONENT,
            "reportingInstance": node_name,
        }
    )


def count_patch(event: Event) -> bytes:
    """JSON of the strategic merge patch of a repetition."""
    return msgspec.json.encode({"count": event.count, "lastTimestamp": event.last_timestamp, "message": event.message})


def namespace_of(event: Event) -> str:
    """Namespace that the Event is kept in."""
    of = event.involved_object
    return NODES_NAMESPACE if of.kind == NODE else of.namespace or NODES_NAMESPACE
