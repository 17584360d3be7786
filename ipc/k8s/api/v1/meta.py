"""Object metadata and the small reference types every v1 object shares (apimachinery meta/v1, core/v1)."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Int64, Time

LabelSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    """The object that owns this one."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(ApiStruct, frozen=True, kw_only=True):
    """Server-side apply bookkeeping; carried, never read."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Mapping[str, Any] | None = None
    subresource: str = ""


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """meta/v1 ObjectMeta. Times are RFC 3339 strings; `deletion_grace_period_seconds` is in seconds."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class LabelSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression of a label selector."""

    key: str
    operator: LabelSelectorOperator
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True, kw_only=True):
    """meta/v1 LabelSelector: all expressions must hold."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class LocalObjectReference(ApiStruct, frozen=True, kw_only=True):
    """The name of an object in the same namespace."""

    name: str = ""


class TypedLocalObjectReference(ApiStruct, frozen=True, kw_only=True):
    """An object of any kind in the same namespace."""

    api_group: str | None = None
    kind: str
    name: str


class TypedObjectReference(ApiStruct, frozen=True, kw_only=True):
    """An object of any kind, possibly in another namespace."""

    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None


class ObjectReference(ApiStruct, frozen=True, kw_only=True):
    """A reference to any object, as events carry it."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""
