"""ConfigMaps and Secrets that the sources state, and the ones that a sync of a pod carries. Pure state.

In memory only, of Secrets and of ConfigMaps alike: there is no checkpoint of them but for their names. Until every
source was read once, what is not here is *unknown*, which is something else than absent
(`ipc.k8s.podobjects.config_objects.ConfigObjects`); what was there before a restart, until its file was read.

Upstream's counterpart is the manager of pkg/kubelet/util/manager, which watches what its pods refer to; here all of
them are known, and the pods that refer to one that changes are synced at once (`supervisor.desired.object_updates`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.podobjects.config_objects import ConfigObject, ConfigObjects, ObjectKey, ObjectKind, ObjectRef
from ipc.k8s.podobjects.redaction import Blocks
from supervisor.managers.secret_values import SecretValues
from supervisor.protocol.source_updates import ObjectUpdate

MAX_POD_BYTES: Final = 6 << 20
"""Most that all objects of one pod, and the names of those that it has not, may take in its SyncPod, in bytes; the rest
of the frame is for the pod itself (`supervisor.sources.objects.kinds.MAX_ENCODED_POD_BYTES`) and what was observed of
it."""


class PodObjects(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that a pod gets, of those that it refers to."""

    objects: ConfigObjects = ConfigObjects()
    size_bytes: int = 0
    """Bytes of all these objects, and of the names of all that it refers to, in a message."""
    unread: bool = False
    """Something is unknown because not every source, or not the file where it stood, was read yet."""
    too_large: tuple[ObjectRef, ...] = ()
    """Objects for which there was no room: unknown to the pod, too."""


class _Stored(msgspec.Struct, frozen=True):
    object: ConfigObject
    size_bytes: int


class ObjectStore:
    """Objects by key, with what they weigh."""

    def __init__(self) -> None:
        self._complete = False
        """Every source was read completely once: what is not here does not exist, unless it is expected."""
        self._expected: frozenset[ObjectKey] = frozenset()
        """Objects that were here before the agent was restarted, and may still be."""
        self._stored: dict[ObjectKey, _Stored] = {}
        self._values = SecretValues()

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._stored

    def find(self, key: ObjectKey) -> ConfigObject | None:
        """The object with its values; None when it is not here."""
        stored = self._stored.get(key)
        return None if stored is None else stored.object

    def sources_ready(self) -> None:
        """Every source was read completely once."""
        self._complete = True

    def expect(self, keys: frozenset[ObjectKey]) -> frozenset[ObjectKey]:
        """Replace the keys of objects that were there before a restart and may still be; those that are expected no
        more."""
        answered, self._expected = self._expected - keys, keys
        return answered

    def take(self, update: ObjectUpdate) -> frozenset[ObjectKey]:
        """Note what is stated; the keys of those whose content came, changed or went."""
        changed = {key for key in update.gone if self._drop(key)}
        for item in update.stated:
            known = self._stored.get(item.key)
            if known is None or known.object != item.object:
                self._drop(item.key)
                self._stored[item.key] = _Stored(item.object, len(msgspec.msgpack.encode(item.object)))
                changed.add(item.key)
        return frozenset(changed)

    def _drop(self, key: ObjectKey) -> bool:
        """Whether it was there."""
        stored = self._stored.pop(key, None)
        if stored is not None and isinstance(stored.object, Secret):
            self._values.replaced(key, stored.object)
        return stored is not None

    def values_known(self, namespace: str, references: Iterable[ObjectRef]) -> tuple[Blocks, ...] | None:
        """Blocks by which the values of the Secrets among the references are recognised, for
        `ipc.k8s.podobjects.redaction`; None when one of them is unknown, or they are too large."""
        keys = [ref.key_in(namespace) for ref in references if ref.kind is ObjectKind.SECRET]
        if any(key not in self._stored and self._may_come(key) for key in keys):
            return None
        return self._values.known_by((key, self._secret(key)) for key in keys)

    def _secret(self, key: ObjectKey) -> Secret | None:
        stored = self._stored.get(key)
        return stored.object if stored is not None and isinstance(stored.object, Secret) else None

    def _may_come(self, key: ObjectKey) -> bool:
        """Whether an object that is not here may be there all the same."""
        return not self._complete or key in self._expected

    def misses_any(self, namespace: str, references: Iterable[ObjectRef]) -> bool:
        """Whether one of these is not here."""
        return any(ref.key_in(namespace) not in self._stored for ref in references)

    def of_pod(self, namespace: str, references: Iterable[ObjectRef]) -> PodObjects:
        """Objects of these references that exist, as many as there is room for, in the order of their names."""
        found: list[ConfigObject] = []
        absent: list[ObjectRef] = []
        too_large: list[ObjectRef] = []
        wanted = sorted(references)
        size_bytes = len(msgspec.msgpack.encode(wanted)) if wanted else 0
        for ref in wanted:
            stored = self._stored.get(ref.key_in(namespace))
            if stored is None:
                absent.append(ref)
            elif size_bytes + stored.size_bytes > MAX_POD_BYTES:
                too_large.append(ref)
            else:
                found.append(stored.object)
                size_bytes += stored.size_bytes
        unread = [ref for ref in absent if self._may_come(ref.key_in(namespace))]
        return PodObjects(
            objects=ConfigObjects(
                config_maps={item.metadata.name: item for item in found if isinstance(item, ConfigMap)},
                secrets={item.metadata.name: item for item in found if isinstance(item, Secret)},
                runtime_classes={item.metadata.name: item for item in found if isinstance(item, RuntimeClass)},
                unknown=frozenset((*unread, *too_large)),
            ),
            size_bytes=size_bytes,
            unread=bool(unread),
            too_large=tuple(too_large),
        )
