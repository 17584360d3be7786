"""Objects of the cluster as they were and are: one history under one rising resourceVersion, as etcd keeps it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar, cast

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.resources import BY_PLURAL, ResourceType, type_of

Key = tuple[str, str, str]
"""Plural, namespace, name."""
FIRST_REVISION: Final = 300
"""Nobody is tempted to count from one."""
NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True)
class Change:
    """One write."""

    revision: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: Key
    object: JsonObject
    """Afterwards; of a deletion the last one, with the deletion's revision."""
    before: JsonObject | None


T = TypeVar("T")


def copied(value: T) -> T:
    """A copy of JSON data, made faster than by `copy.deepcopy`."""
    found: Any = value
    if isinstance(found, dict):
        found = {name: copied(each) for name, each in found.items()}
    elif isinstance(found, list):
        found = [copied(each) for each in found]
    return cast(T, found)


def random_uid() -> str:
    return str(uuid.uuid4())


class Store:
    """Objects and their history. What goes in and comes out is copied: nobody shares a dictionary with it."""

    def __init__(self, now: Callable[[], datetime], new_uid: Callable[[], str] = random_uid) -> None:
        self._now = now
        self._new_uid = new_uid
        self.revision = FIRST_REVISION
        self.compacted = 0
        """Forget what happened up to this revision: watches and lists from before are expired."""
        self._objects: dict[Key, JsonObject] = {}
        self._history: list[Change] = []
        self._listeners: dict[Callable[[], None], None] = {}
        for name in NAMESPACES:
            self.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
            account = {"metadata": {"name": "default", "namespace": name}}
            self.create({"kind": "ServiceAccount", "apiVersion": "v1"} | account)  # as a controller does

    def now(self) -> str:
        """RFC 3339, in seconds."""
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def create(self, object_: JsonObject) -> JsonObject:
        """Adds an object as it would be after admission: name, uid and dates are filled in where they are missing.
        Raises Refusal when it exists."""
        resource = type_of(object_)
        made = copied(object_)
        metadata = made.setdefault("metadata", {})
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        if "name" not in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        key = key_of(resource, made)
        if key in self._objects:
            raise failures.already_exists(resource.plural, metadata["name"], resource.group)
        metadata["uid"] = metadata.get("uid") or self._new_uid()
        metadata.setdefault("creationTimestamp", self.now())
        if resource.has_generation:
            metadata.setdefault("generation", 1)
        return self._write("ADDED", key, made)

    def get(self, plural: str, namespace: str, name: str) -> JsonObject:
        """Raises Refusal (404)."""
        found = self._objects.get((plural, namespace, name))
        if found is None:
            raise failures.not_found(plural, name, BY_PLURAL[plural].group)
        return copied(found)

    def has(self, plural: str, namespace: str, name: str) -> bool:
        return (plural, namespace, name) in self._objects

    def update(self, object_: JsonObject) -> JsonObject:
        """Replaces an object; one that does not differ is not written. A resourceVersion that it has must be the
        newest. Raises Refusal (404, 409)."""
        resource = type_of(object_)
        made = copied(object_)
        if resource.namespaced:
            made["metadata"].setdefault("namespace", "default")
        key = key_of(resource, made)
        before = self.get(*key)
        told = object_["metadata"].get("resourceVersion")
        if told and told != before["metadata"]["resourceVersion"]:
            raise failures.conflict(resource.plural, key[2], failures.MODIFIED, resource.group)
        made["metadata"] |= {name: before["metadata"][name] for name in ("uid", "creationTimestamp", "resourceVersion")}
        return before if made == before else self._write("MODIFIED", key, made)

    def delete(self, plural: str, namespace: str, name: str, last: JsonObject | None = None) -> JsonObject:
        """Takes an object away at once, whatever its grace period; `last` is what is told of it then. Raises Refusal
        (404)."""
        found = self.get(plural, namespace, name)
        return self._write("DELETED", (plural, namespace, name), copied(last or found))

    def all(self, plural: str) -> list[JsonObject]:
        """Objects of all namespaces, in the order of namespace and name."""
        return [copied(self._objects[key]) for key in sorted(self._objects) if key[0] == plural]

    def at(self, revision: int) -> Mapping[Key, JsonObject]:
        """Objects as they were at a revision; not to be changed."""
        if revision >= self.revision:
            return dict(self._objects)
        found: dict[Key, JsonObject] = {}
        for change in self._history:
            if change.revision > revision:
                break
            _take(found, change)
        return found

    def since(self, revision: int) -> Iterator[Change]:
        """Every change after a revision, oldest first."""
        start = len(self._history)
        while start and self._history[start - 1].revision > revision:
            start -= 1
        yield from self._history[start:]

    def compact(self) -> None:
        """Forgets everything but what is now."""
        self.compacted = self.revision
        self._tell()

    def restore(self, revision: int) -> None:
        """Goes back to what there was at a revision, as after a restore of an older backup: revisions fall."""
        self._objects = {key: copied(found) for key, found in self.at(revision).items()}
        self._history = [change for change in self._history if change.revision <= revision]
        self.revision = revision
        self.compacted = min(self.compacted, revision)
        self._tell()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls after every change, until the returned function was called."""
        self._listeners[listener] = None
        return lambda: self._listeners.pop(listener, None)

    def _write(self, type_: Literal["ADDED", "MODIFIED", "DELETED"], key: Key, made: JsonObject) -> JsonObject:
        self.revision += 1
        made["metadata"]["resourceVersion"] = str(self.revision)
        change = Change(self.revision, type_, key, made, self._objects.get(key))
        self._history.append(change)
        _take(self._objects, change)
        self._tell()
        return copied(made)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


def key_of(resource: ResourceType, object_: JsonObject) -> Key:
    metadata = object_["metadata"]
    return resource.plural, metadata.get("namespace", "") if resource.namespaced else "", metadata["name"]


def _take(objects: dict[Key, JsonObject], change: Change) -> None:
    if change.type == "DELETED":
        objects.pop(change.key, None)
    else:
        objects[change.key] = change.object
