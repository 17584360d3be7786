"""Reading the Structs as data: which JSON fields a type has and what each holds.

Decoding, the table of support and the tests walk the types with it, and keep no lists of their own.
"""

import functools
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import msgspec
import msgspec.structs


class Kind(Enum):
    """Shape of a field's value, as far as walking is concerned."""

    STRUCT = "object"
    LIST = "array"
    MAP = "object of named values"
    FREE_FORM = "anything"
    LEAF = "a single value"


class Shape(msgspec.Struct, frozen=True):
    """`inner` is the Struct type, the item's or value's annotation, or the leaf's own annotation; never optional."""

    kind: Kind
    inner: Any


class StructField(msgspec.Struct, frozen=True):
    """One JSON field of a Struct. `default` is what an absent field decodes to; None where it is `required`."""

    name: str
    attribute: str
    shape: Shape
    required: bool
    default: Any


def shape_of(annotation: object) -> Shape:
    """The shape behind an annotation, with `| None` removed."""
    bare = _without_none(annotation)
    origin = typing.get_origin(bare)
    if origin is tuple:
        return Shape(Kind.LIST, typing.get_args(bare)[0])
    if origin is Mapping:
        return Shape(Kind.MAP, typing.get_args(bare)[1])
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return Shape(Kind.STRUCT, bare)
    return Shape(Kind.FREE_FORM if bare is Any else Kind.LEAF, bare)


def literal_values(annotation: object) -> tuple[str, ...]:
    """The words of an enumeration, also of a union of them; () for any other type."""
    members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    if not all(typing.get_origin(member) is typing.Literal for member in members):
        return ()
    return tuple(value for member in members for value in typing.get_args(member))


def max_length(annotation: object) -> int | None:
    """The most characters that a text of this type may have; None when nothing is said of that."""
    found = (member.max_length for member in typing.get_args(annotation) if isinstance(member, msgspec.Meta))
    return next(found, None)


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in (types.UnionType, typing.Union)


def _without_none(annotation: object) -> object:
    if not _is_union(annotation):
        return annotation
    rest = tuple(member for member in typing.get_args(annotation) if member is not types.NoneType)
    return functools.reduce(lambda left, right: left | right, rest)


@functools.cache
def struct_fields(struct: type[msgspec.Struct]) -> Mapping[str, StructField]:
    """The fields of a Struct type by JSON name, in order."""
    return {
        info.encode_name: StructField(info.encode_name, info.name, shape_of(info.type), info.required, _default(info))
        for info in msgspec.structs.fields(struct)
    }


IS_SET: Final = functools.partial(operator.is_not, None)
"""Whether a value is not None."""


@functools.cache
def attribute_values(attributes: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    """Reads all of these attributes of a value at once. A volume has one of thirty sources, and an object may have
    tens of thousands of volumes: a look at each attribute by itself would cost most of what is done to it."""
    if len(attributes) > 1:
        return operator.attrgetter(*attributes)
    return lambda value: tuple(getattr(value, attribute) for attribute in attributes)


def _default(info: msgspec.structs.FieldInfo) -> object:
    if info.default is not msgspec.NODEFAULT:
        return info.default
    return None if info.default_factory is msgspec.NODEFAULT else info.default_factory()


def field_paths(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every field path below a Struct type, parents first; `[*]` stands for the items of a list of objects."""
    for name, field in struct_fields(struct).items():
        path = f"{prefix}.{name}" if prefix else name
        yield path
        shape, below = field.shape, path
        if shape.kind is Kind.LIST:
            shape, below = shape_of(shape.inner), f"{path}[*]"
        if shape.kind is Kind.STRUCT:
            yield from field_paths(shape.inner, below)
