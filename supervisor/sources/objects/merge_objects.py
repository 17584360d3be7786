"""Objects beside pods, of several sources: what is their own beside the rules that pods have too. Pure.

A ConfigMap or Secret that says that it is immutable stays as it was when its content changes
(ValidateConfigMapUpdate, ValidateSecretUpdate), and so do a Secret whose type, a PriorityClass whose value, a
PersistentVolume whose source and a claim whose spec changes, until the object is gone from its source. Nothing of an
object is kept on disk for that: after a restart of the agent what the manifest states then is what counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.api.errors import FieldError
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.api.validation.classes import validate_priority_class_update, validate_runtime_class_update
from ipc.k8s.api.validation.config_objects import validate_config_map_update, validate_secret_update
from ipc.k8s.api.validation.persistent_volumes import (
    validate_persistent_volume_claim_update,
    validate_persistent_volume_update,
)
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKey
from supervisor.protocol.manifests import DesiredObject, ManifestError, ManifestErrorKind, SourceSnapshot, error_about
from supervisor.protocol.source_updates import ObjectUpdate
from supervisor.sources.objects.claims import Conflict, arbitrate, place

MAX_OBJECTS: Final = 5_000
"""Most objects beside pods of all sources together."""

AcceptedObjects = Mapping[ObjectKey, DesiredObject]
_NO_AGES: Final[Mapping[ObjectKey, str]] = {}
"""Accepted objects, in the order of acceptance."""


def merge_objects(
    snapshot: SourceSnapshot,
    old: AcceptedObjects,
    others: Iterable[DesiredObject],
    now: Instant,
    ages: Mapping[ObjectKey, str] = _NO_AGES,
) -> tuple[AcceptedObjects, tuple[ManifestError, ...]]:
    """Objects of one source that are accepted now, and those that wait or are refused. ``others``: of other sources;
    ``ages``: when objects that an agent before had accepted were first seen, RFC 3339."""
    source = snapshot.source
    stated = [
        DesiredObject(source=source, object=item.object, file=item.file, document=item.document)
        for item in snapshot.objects
    ]
    held_elsewhere = list(others)
    claims, conflicts = arbitrate(snapshot, stated, old.values(), held_elsewhere)
    claims, surplus = _within_maximum(claims, MAX_OBJECTS - len(held_elsewhere))
    refused = {claim.key: tuple(_refusals(claim, old[claim.key].object)) for claim in claims if claim.key in old}
    new = {
        claim.key: old[claim.key]
        if refused.get(claim.key)
        else _known(claim, old.get(claim.key), ages.get(claim.key) or rfc3339(now.wall))
        for claim in claims
    }
    return new, (*map(_conflict, conflicts), *itertools.chain.from_iterable(refused.values()), *surplus)


def _within_maximum(
    claims: tuple[DesiredObject, ...], room: int
) -> tuple[tuple[DesiredObject, ...], tuple[ManifestError, ...]]:
    """Claims that came first, and the errors for the others."""
    why = f"more than {MAX_OBJECTS} objects beside pods"
    return claims[:room], tuple(error_about(claim, ManifestErrorKind.INVALID, "", why) for claim in claims[room:])


def object_updates(
    before: AcceptedObjects, after: AcceptedObjects
) -> tuple[tuple[ObjectUpdate, ...], tuple[ObjectUpdate, ...]]:
    """Objects that came or changed, and keys of those that went, of all sources."""
    came = tuple(item for key, item in after.items() if key not in before or _differs(before[key], item))
    went = tuple(key for key in before if key not in after)
    return (ObjectUpdate(stated=came),) if came else (), (ObjectUpdate(gone=went),) if went else ()


def _differs(before: DesiredObject, now: DesiredObject) -> bool:
    """A document may move within its file, which concerns nobody."""
    return (before.source, before.file, before.object) != (now.source, now.file, now.object)


def changes_refused(new: ConfigObject, old: ConfigObject) -> tuple[FieldError, ...]:
    """Errors of changes that are not allowed."""
    match new, old:
        case ConfigMap(), ConfigMap():
            return validate_config_map_update(new, old)
        case Secret(), Secret():
            return validate_secret_update(new, old)
        case PriorityClass(), PriorityClass():
            return validate_priority_class_update(new, old)
        case PersistentVolume(), PersistentVolume():
            return validate_persistent_volume_update(new, old)
        case PersistentVolumeClaim(), PersistentVolumeClaim():
            return validate_persistent_volume_claim_update(new, old)
        case RuntimeClass(), RuntimeClass():
            return validate_runtime_class_update(new, old)
    raise TypeError(f"a {new.kind} is no {old.kind}")


def _known(claim: DesiredObject, existing: DesiredObject | None, first_seen: str) -> DesiredObject:
    """The claim as old as its object is known here, whatever has changed of it."""
    created = existing.object.metadata.creation_timestamp if existing is not None else first_seen
    metadata = msgspec.structs.replace(claim.object.metadata, creation_timestamp=created)
    return msgspec.structs.replace(claim, object=msgspec.structs.replace(claim.object, metadata=metadata))


def _refusals(claim: DesiredObject, existing: ConfigObject) -> Iterator[ManifestError]:
    for error in changes_refused(claim.object, existing):
        why = f"{claim.key} stays as it was: {error.message}"
        yield error_about(claim, ManifestErrorKind.IMMUTABLE, error.path, why)


def _conflict(conflict: Conflict[DesiredObject]) -> ManifestError:
    why = f"{conflict.item.key} already comes from {place(conflict.holder)}, which keeps it"
    return error_about(conflict.item, ManifestErrorKind.CONFLICT, "metadata.name", why)
