"""The master's messages as the JSON objects that clients see. Pure; each object is encoded once, however many ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar, cast

import msgspec

from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodCondition, PodStatus
from ipc.link.messages.api_server import EventChanged, ObjectChanged, PodChanged
from ipc.link.messages.wait_reasons import HELD_UP_CONDITION, WORDS, WaitReason
from workers.api_server.store.views import object_view

M = TypeVar("M", PodChanged, EventChanged, ObjectChanged)

DEFAULT_GRACE_PERIOD_S: Final = 30
"""core/v1 DefaultTerminationGracePeriodSeconds. A pod under deletion always shows one: kubectl relies on it."""
_TRUTH: Final = {True: "true", False: "false"}


class WatchedObject(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """One object as it is or was, ready to be sent."""

    key: str
    """Key that no other object of the kind has, at any time: a pod's uid, an event's name."""
    namespace: str
    name: str
    resource_version: int
    terminating: bool = False
    labels: Mapping[str, str] = {}
    kept_fields: Mapping[str, str] | None = None
    """The `fields`, unless they are read from the JSON each time: of events, of which there are many."""
    observed_at: float = 0.0
    """Monotonic seconds at which the observation began that this status tells of; 0.0 when unknown."""
    json: bytes
    kind: type[M]

    @property
    def fields(self) -> Mapping[str, str]:
        """Values of the fields that its kind can be selected by (`ipc.k8s.resources.registry`)."""
        return _event_fields(self.json) if self.kept_fields is None else self.kept_fields


class StoredObject(WatchedObject[M], Generic[M], frozen=True, kw_only=True):
    """One object as it is."""

    packed: bytes = b""
    """The message that says all this, as msgpack: a third of what its objects take, and asked for by few. Empty for an
    event, whose JSON says the same."""

    @property
    def message(self) -> M:
        """Unpacked anew each time."""
        if not self.packed:
            event = msgspec.json.decode(self.json, type=Event)
            message: object = EventChanged(resource_version=self.resource_version, event=event)
            return cast(M, message)
        return msgspec.msgpack.decode(self.packed, type=self.kind)

    def watched(self) -> WatchedObject[M]:
        """This object without its message, for a history."""
        return WatchedObject(**{name: getattr(self, name) for name in WatchedObject.__struct_fields__})


def pod_object(message: PodChanged, resource_version: int) -> StoredObject[PodChanged]:
    """A v1 Pod with its status, under that resourceVersion."""
    pod = _reported_pod(message, resource_version)
    meta = pod.metadata
    return StoredObject(
        key=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version=resource_version,
        terminating=bool(meta.deletion_timestamp),
        labels=meta.labels,
        kept_fields={
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "spec.nodeName": pod.spec.node_name,
            "spec.restartPolicy": pod.spec.restart_policy,
            "spec.schedulerName": pod.spec.scheduler_name,
            "spec.serviceAccountName": pod.spec.service_account_name,
            "spec.hostNetwork": _TRUTH[pod.spec.host_network],
            "status.nominatedNodeName": "",
            "status.phase": pod.status.phase,
            "status.podIP": pod.status.pod_ip,
        },
        json=msgspec.json.encode(pod),
        packed=msgspec.msgpack.encode(message),
        kind=PodChanged,
        observed_at=message.observed_at,
    )


def _reported_pod(message: PodChanged, resource_version: int) -> Pod:
    """The pod as it is shown. One from a file has no creationTimestamp of its own: then it is as old as its status."""
    meta, spec = message.pod.metadata, message.pod.spec
    deleted_at = message.deletion_timestamp or meta.deletion_timestamp
    grace_period_s = meta.deletion_grace_period_seconds
    if deleted_at and grace_period_s is None:
        stated_s = spec.termination_grace_period_seconds
        grace_period_s = DEFAULT_GRACE_PERIOD_S if stated_s is None else stated_s
    shown = msgspec.structs.replace(
        meta,
        resource_version=str(resource_version),
        creation_timestamp=meta.creation_timestamp or message.status.start_time,
        deletion_timestamp=deleted_at or None,
        deletion_grace_period_seconds=grace_period_s,
    )
    return msgspec.structs.replace(message.pod, metadata=shown, status=_reported_status(message))


def _reported_status(message: PodChanged) -> PodStatus:
    """With a condition of ours while something holds the pod up. No cluster is told of it."""
    if not message.waits_for:
        return message.status
    words = WORDS[WaitReason(message.waits_for)]
    held_up = PodCondition(type=HELD_UP_CONDITION, status="True", reason=message.waits_for, message=words)
    return msgspec.structs.replace(message.status, conditions=(*message.status.conditions, held_up))


def event_object(message: EventChanged, resource_version: int) -> StoredObject[EventChanged]:
    """A v1 Event, under that resourceVersion."""
    meta: ObjectMeta = msgspec.structs.replace(message.event.metadata, resource_version=str(resource_version))
    return StoredObject(
        key=meta.name,
        namespace=meta.namespace,
        name=meta.name,
        resource_version=resource_version,
        labels=meta.labels,
        json=msgspec.json.encode(msgspec.structs.replace(message.event, metadata=meta)),
        kind=EventChanged,
    )


def _event_fields(json: bytes) -> Mapping[str, str]:
    event = msgspec.json.decode(json, type=Event)
    about: ObjectReference = event.involved_object
    return {
        "metadata.name": event.metadata.name,
        "metadata.namespace": event.metadata.namespace,
        "involvedObject.kind": about.kind,
        "involvedObject.name": about.name,
        "involvedObject.namespace": about.namespace,
        "involvedObject.uid": about.uid,
        "involvedObject.fieldPath": about.field_path,
        "involvedObject.apiVersion": about.api_version,
        "reason": event.reason,
        "reportingComponent": event.reporting_component,
        "source": event.source.component or event.reporting_component,
        "type": event.type,
    }


def config_object(message: ObjectChanged, resource_version: int) -> StoredObject[ObjectChanged]:
    """A class, volume or claim, or a ConfigMap or Secret without its values, under that resourceVersion."""
    summary = message.summary
    meta = msgspec.structs.replace(summary.metadata, resource_version=str(resource_version))
    return StoredObject(
        key=config_object_key(meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        resource_version=resource_version,
        labels=meta.labels,
        kept_fields={"metadata.name": meta.name, "metadata.namespace": meta.namespace, "type": summary.type},
        json=msgspec.json.encode(
            msgspec.structs.replace(summary.object, metadata=meta)
            if summary.object is not None
            else object_view(summary, meta)
        ),
        packed=msgspec.msgpack.encode(message),
        kind=ObjectChanged,
    )


def config_object_key(namespace: str, name: str) -> str:
    """No namespace has a slash in it."""
    return f"{namespace}/{name}"


def watch_line(type_: str, json: bytes, observed_at: float = 0.0) -> bytes:
    """One meta/v1 WatchEvent, as one line. ``observedAt`` (monotonic seconds, ours) says how old the truth in it is."""
    stamp = f',"observedAt":{observed_at!r}' if observed_at else ""
    return b"".join((b'{"type":"', type_.encode(), b'","object":', json, stamp.encode(), b"}\n"))


def bookmark_line(kind: str, resource_version: int) -> bytes:
    """A BOOKMARK: nothing happened up to here."""
    body = f'{{"kind":"{kind}","apiVersion":"v1","metadata":{{"resourceVersion":"{resource_version}"}}}}'
    return watch_line("BOOKMARK", body.encode())
