"""Fields of a kind in words, from the types and the table of support (kubectl pkg/explain)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ipc.k8s.api.schema import Kind, Shape, StructField, literal_values, shape_of, struct_fields
from ipc.k8s.api.support.findings import row_of
from ipc.k8s.api.support.table import FieldSupport
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.resources.registry import find_resource
from ipc.k8s.resources.resource import Resource

_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "Pod": Pod,
    "ConfigMap": ConfigMap,
    "Secret": Secret,
    "Event": Event,
    "PriorityClass": PriorityClass,
    "RuntimeClass": RuntimeClass,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
}
_LEAVES: Final[Mapping[type, str]] = {str: "string", int: "integer", bool: "boolean", float: "number", bytes: "string"}
_WIDTH: Final = 80
_PATH_ROOT: Final = "Pod"
"""The kind of which the table of support speaks."""


class UnknownField(Exception):
    """There is no such kind or field; the text says which."""


class _Place(msgspec.Struct, frozen=True):
    """A field that was found on the way down."""

    shape: Shape
    pattern: str
    """Path in the table of support."""
    name: str = ""


def explained(path: str, api_version: str = "", *, recursive: bool = False, max_depth: int = 0) -> str:
    """The page of a kind or of one of its fields. Raises UnknownField."""
    resource, place = _found(path)
    if api_version not in ("", resource.api_version):
        raise UnknownField(f"couldn't find resource for {api_version}, Kind={resource.kind}")
    is_pod = resource.kind == _PATH_ROOT
    head = [f"KIND:       {resource.kind}", f"VERSION:    {resource.api_version}", ""]
    if place.name:
        head += [f"FIELD: {place.name} <{_type_name(place.shape)}>", ""]
    about = _description(_struct_of(place.shape), row_of(place.pattern) if is_pod and place.pattern else None)
    lines = [*head, "DESCRIPTION:", *about, ""]
    if (inner := _struct_of(place.shape)) is not None:
        lines += ["FIELDS:"]
        lines += (
            _names(inner, 1, max_depth or 100, ())
            if recursive
            else [line for field in struct_fields(inner).values() for line in _field_lines(field, place, is_pod)]
        )
    return "".join(f"{line}\n" for line in lines)


def kinds() -> list[str]:
    """Names of all kinds whose fields are known, as people type them."""
    return [kind.lower() for kind in _TYPES]


def field_names(path: str) -> list[str]:
    """Names of the fields of a kind, or below one of its fields; none where it has none. Raises UnknownField."""
    inner = _struct_of(_found(path)[1].shape)
    return [] if inner is None else list(struct_fields(inner))


def _found(path: str) -> tuple[Resource, _Place]:
    """Raises UnknownField."""
    kind, *names = path.split(".")
    resource = find_resource(kind)
    if resource is None:
        raise UnknownField(f'the server doesn\'t have a resource type "{kind}"')
    struct = _TYPES.get(resource.kind)
    if struct is None:
        raise UnknownField(f"of the fields of {resource.plural} nothing is written down here: only {', '.join(_TYPES)}")
    place = _Place(Shape(Kind.STRUCT, struct), "")
    for name in names:
        place = _below(place, name)
    return resource, place


def _below(place: _Place, name: str) -> _Place:
    struct = _struct_of(place.shape)
    field = struct_fields(struct).get(name) if struct is not None else None
    if field is None:
        raise UnknownField(f'field "{name}" does not exist')
    return _Place(field.shape, _pattern(place, name), name)


def _pattern(place: _Place, name: str) -> str:
    item = "[*]" if place.shape.kind is Kind.LIST else ""
    return f"{place.pattern}{item}.{name}" if place.pattern else name


def _struct_of(shape: Shape) -> type[msgspec.Struct] | None:
    """The type whose fields stand below."""
    while shape.kind in (Kind.LIST, Kind.MAP):
        shape = shape_of(shape.inner)
    return shape.inner if shape.kind is Kind.STRUCT else None


def _type_name(shape: Shape) -> str:
    """``[]Container``, ``map[string]string``, as kubectl writes types."""
    match shape.kind:
        case Kind.STRUCT:
            return str(shape.inner.__name__)
        case Kind.LIST:
            return f"[]{_type_name(shape_of(shape.inner))}"
        case Kind.MAP:
            return f"map[string]{_type_name(shape_of(shape.inner))}"
        case Kind.FREE_FORM:
            return "Object"
    return "string" if literal_values(shape.inner) else _leaf_name(shape.inner)


def _leaf_name(annotation: Any) -> str:
    found = getattr(annotation, "__origin__", annotation)
    return _LEAVES.get(found, str(getattr(found, "__name__", "value")))


def _description(struct: type[msgspec.Struct] | None, row: FieldSupport | None) -> list[str]:
    words = []
    if struct is not None and struct.__doc__:
        words.append(" ".join(struct.__doc__.split()))
    if row is not None:
        words.append(_support(row))
    return [line for text in words or ["-"] for line in _wrapped(text)]


def _support(row: FieldSupport) -> str:
    return f"{row.support.value}: {row.why}" if row.why else row.support.value


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _field_lines(field: StructField, place: _Place, is_pod: bool) -> Iterator[str]:
    required = " -required-" if field.required else ""
    yield f"  {field.name}\t<{_type_name(field.shape)}>{required}"
    if values := literal_values(field.shape.inner):
        yield f"  enum: {', '.join(values)}"
    row = row_of(_pattern(place, field.name)) if is_pod else None
    if row is not None:
        yield from _wrapped(_support(row))
    yield ""


def _names(struct: type[msgspec.Struct], level: int, left: int, above: tuple[type, ...]) -> Iterator[str]:
    """Names and types, those of fields within fields further in; a type within itself is not entered again."""
    for field in struct_fields(struct).values():
        required = " -required-" if field.required else ""
        yield f"{'  ' * level}{field.name}\t<{_type_name(field.shape)}>{required}"
        inner = _struct_of(field.shape)
        if inner is not None and inner not in (*above, struct) and left > 1:
            yield from _names(inner, level + 1, left - 1, (*above, struct))
