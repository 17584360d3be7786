"""meta/v1 Table: when a client wants one, and objects as one (apiserver pkg/endpoints/handlers, response.go)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.resources import registry
from ipc.k8s.resources.resource import Column, Resource
from workers.api_server.core.status_errors import ApiError, bad_request
from workers.api_server.printers.config_objects import (
    config_map_row,
    namespace_row,
    priority_class_row,
    runtime_class_row,
    secret_row,
)
from workers.api_server.printers.events import by_time, event_row
from workers.api_server.printers.nodes import node_row
from workers.api_server.printers.persistent_volumes import claim_row, volume_row
from workers.api_server.printers.pods import pod_row
from workers.api_server.printers.workers import worker_row

Cells = Callable[[Json, float], Sequence[object]]

ROWS: Final[Mapping[str, Cells]] = {
    registry.PODS.plural: pod_row,
    registry.NODES.plural: node_row,
    registry.EVENTS.plural: event_row,
    registry.NAMESPACES.plural: namespace_row,
    registry.CONFIG_MAPS.plural: config_map_row,
    registry.SECRETS.plural: secret_row,
    registry.PRIORITY_CLASSES.plural: priority_class_row,
    registry.RUNTIME_CLASSES.plural: runtime_class_row,
    registry.PERSISTENT_VOLUMES.plural: volume_row,
    registry.PERSISTENT_VOLUME_CLAIMS.plural: claim_row,
    registry.WORKERS.plural: worker_row,
}
"""By plural: from an object as JSON and the time in epoch seconds to a cell for each of the kind's columns."""
ORDERS: Final[Mapping[str, Callable[[Json], tuple[str, int]]]] = {registry.EVENTS.plural: by_time}
"""Sort keys of rows, for kinds that are not shown by namespace and name."""


META: Final = "meta.k8s.io/v1"
MAX_ACCEPT_CHARS: Final = 1024
"""Longest header that is looked into."""
_TABLE: Final = {"as": "Table", "g": "meta.k8s.io"}
_VERSIONS: Final = frozenset(("v1", "v1beta1"))
_PLAIN: Final = frozenset(("application/json", "application/*", "*/*"))


class IncludeObject(enum.StrEnum):
    """meta/v1 IncludeObjectPolicy: what of the object stands beside its cells."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


class PartialObjectMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """meta/v1 PartialObjectMetadata."""

    metadata: Json
    kind: str = "PartialObjectMetadata"
    api_version: str = META


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """meta/v1 TableRow."""

    cells: Sequence[Any]
    object: PartialObjectMetadata | msgspec.Raw | None = None


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """meta/v1 Table."""

    metadata: Json
    column_definitions: Sequence[Column] | None
    rows: Sequence[Row]
    kind: str = "Table"
    api_version: str = META


def wants_table(accept: str) -> bool:
    """Whether an Accept header prefers a table to the object itself. Raises ApiError 406 for one that takes neither."""
    for media in accept[:MAX_ACCEPT_CHARS].split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        said = dict(part.split("=", 1) for part in parameters if "=" in part)
        if said.get("as") == _TABLE["as"] and said.get("g") == _TABLE["g"] and said.get("v") in _VERSIONS:
            return True
        if name in _PLAIN and "as" not in said:
            return False
    if "as=Table" in accept:
        raise ApiError(406, "only the following media types are accepted: application/json", reason="NotAcceptable")
    return False


def include_object(query: Mapping[str, str]) -> IncludeObject:
    """The policy that a query asks for. Raises ApiError 400."""
    text = query.get("includeObject") or IncludeObject.METADATA
    if text not in set(IncludeObject):
        raise bad_request(f"includeObject: must be one of {', '.join(IncludeObject)}")
    return IncludeObject(text)


class TablePrinter:
    """Tables of one kind for one client."""

    def __init__(self, resource: Resource, include: IncludeObject) -> None:
        self._resource = resource
        self._include = include
        self._columns: Sequence[Column] | None = resource.columns

    def table(self, found: Iterable[bytes], resource_version: str, now: float) -> bytes:
        """All of these objects, encoded each; ``now`` in epoch seconds."""
        objects = [(msgspec.json.decode(each), each) for each in found]
        if order := ORDERS.get(self._resource.plural):
            objects.sort(key=lambda pair: order(pair[0]))
        rows = [self._row(decoded, each, now) for decoded, each in objects]
        return msgspec.json.encode(Table({"resourceVersion": resource_version}, self._resource.columns, rows))

    def next_row(self, each: bytes, now: float) -> bytes:
        """One object, as an event of a watch has it: columns are told with the first one only."""
        decoded = msgspec.json.decode(each)
        columns, self._columns = self._columns, None
        metadata = {"resourceVersion": decoded["metadata"].get("resourceVersion", "")}
        return msgspec.json.encode(Table(metadata, columns, [self._row(decoded, each, now)]))

    def _row(self, decoded: Any, encoded: bytes, now: float) -> Row:
        cells = ROWS[self._resource.plural](decoded, now)
        match self._include:
            case IncludeObject.NONE:
                return Row(cells)
            case IncludeObject.METADATA:
                return Row(cells, PartialObjectMetadata(decoded.get("metadata", {})))
            case IncludeObject.OBJECT:
                return Row(cells, msgspec.Raw(encoded))
