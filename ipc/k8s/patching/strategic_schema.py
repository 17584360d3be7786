"""How the fields of a type are patched: the ``patchStrategy`` and ``patchMergeKey`` tags of core/v1/types.go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from ipc.k8s.api.schema import Kind, Shape, shape_of, struct_fields
from ipc.k8s.patching.values import PatchError


class FieldPatch(msgspec.Struct, frozen=True, kw_only=True):
    """One field: the type of its value, or of the items of its list, and what a patch of it means."""

    below: Schema
    strategy: str = ""
    """``merge``, ``replace``, or nothing: maps merge then, and lists are replaced."""
    retain_keys: bool = False
    """A patch of it says which keys are left."""
    merge_key: str = ""
    """Key by which items of a merging list are the same; empty for scalars."""
    together: frozenset[str] = frozenset()
    """Fields of the value, or of the items, that say one thing together: who states one of them means the others, too,
    by leaving them out."""


class Schema(Protocol):
    """A type, as far as patches ask."""

    def field(self, name: str) -> FieldPatch:
        """Raises PatchError for a field that the type has not (forked/golang/json, LookupPatchMetadata)."""


class Opaque:
    """A value without fields of its own."""

    def field(self, name: str) -> FieldPatch:
        raise PatchError(f'unable to find api field in struct  for the json field "{name}"')


class MapOf:
    """Named values of one type."""

    def __init__(self, below: Schema) -> None:
        self._field = FieldPatch(below=below)

    def field(self, name: str) -> FieldPatch:
        return self._field


class StructSchema:
    """A type of core/v1, by its name and the names of its fields there."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        self._struct = struct

    @property
    def name(self) -> str:
        """The type's, as in core/v1."""
        return self._struct.__name__

    def field(self, name: str) -> FieldPatch:
        found = struct_fields(self._struct).get(name)
        if found is None:
            raise PatchError(f'unable to find api field in struct {self._struct.__name__} for the json field "{name}"')
        strategy, merge_key, retain_keys = _TAGS.get((self._struct.__name__, name), ("", "", False))
        below = schema_of(found.shape)
        return FieldPatch(
            below=below,
            strategy=strategy,
            merge_key=merge_key,
            retain_keys=retain_keys,
            together=_TOGETHER.get(below.name, frozenset()) if isinstance(below, StructSchema) else frozenset(),
        )


def schema_of(shape: Shape) -> Schema:
    """Schema of a value; for a list that of its items."""
    match shape.kind:
        case Kind.STRUCT:
            return StructSchema(shape.inner)
        case Kind.LIST:
            return schema_of(shape_of(shape.inner))
        case Kind.MAP:
            return MapOf(schema_of(shape_of(shape.inner)))
    return Opaque()


_Tag = tuple[str, str, bool]
_MERGE_BY_NAME: Final[_Tag] = ("merge", "name", False)
_RETAIN_BY_NAME: Final[_Tag] = ("merge", "name", True)


def _container(name: str) -> dict[tuple[str, str], _Tag]:
    return {
        (name, "ports"): ("merge", "containerPort", False),
        (name, "env"): _MERGE_BY_NAME,
        (name, "volumeMounts"): ("merge", "mountPath", False),
        (name, "volumeDevices"): ("merge", "devicePath", False),
    }


_TAGS: Final[Mapping[tuple[str, str], _Tag]] = {
    ("ObjectMeta", "ownerReferences"): ("merge", "uid", False),
    ("ObjectMeta", "finalizers"): ("merge", "", False),
    ("PodSpec", "volumes"): _RETAIN_BY_NAME,
    ("PodSpec", "initContainers"): _MERGE_BY_NAME,
    ("PodSpec", "containers"): _MERGE_BY_NAME,
    ("PodSpec", "ephemeralContainers"): _MERGE_BY_NAME,
    ("PodSpec", "imagePullSecrets"): _MERGE_BY_NAME,
    ("PodSpec", "hostAliases"): ("merge", "ip", False),
    ("PodSpec", "topologySpreadConstraints"): ("merge", "topologyKey", False),
    ("PodSpec", "schedulingGates"): _MERGE_BY_NAME,
    ("PodSpec", "resourceClaims"): _RETAIN_BY_NAME,
    ("PodStatus", "conditions"): ("merge", "type", False),
    ("PodStatus", "podIPs"): ("merge", "ip", False),
    ("PodStatus", "hostIPs"): ("merge", "ip", False),
    ("PodStatus", "resourceClaimStatuses"): _RETAIN_BY_NAME,
    ("NodeStatus", "conditions"): ("merge", "type", False),
    **_container("Container"),
    **_container("EphemeralContainer"),
}
"""By name of the type and of its field."""

_TOGETHER: Final[Mapping[str, frozenset[str]]] = {
    "Probe": frozenset({"exec", "httpGet", "tcpSocket", "grpc"}),
    "LifecycleHandler": frozenset({"exec", "httpGet", "tcpSocket", "sleep"}),
    "EnvVar": frozenset({"value", "valueFrom"}),
    "EnvVarSource": frozenset({"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}),
    "SeccompProfile": frozenset({"type", "localhostProfile"}),
    "AppArmorProfile": frozenset({"type", "localhostProfile"}),
}
"""By name of the type; sources of volumes have ``retainKeys`` for it."""
