"""Findings about fields of a pod that Rootlet does not act on: the table of support held against a pod. Pure."""

import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ipc.k8s.api.schema import Kind, Shape, StructField, attribute_values, shape_of, struct_fields
from ipc.k8s.api.support.table import ROWS, FieldSupport, Support
from ipc.k8s.api.v1.pod import Pod

UNSUPPORTED: Final = frozenset(Support) - {Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE}
_BY_PATH: Final[Mapping[str, FieldSupport]] = {row.path: row for row in ROWS}
_CONTAINER: Final = "spec.containers[*]"
_OTHER_CONTAINERS: Final = ("spec.initContainers[*]", "spec.ephemeralContainers[*]")
_CONTAINERS, *_OTHER_LISTS = (path.removesuffix("[*]") for path in (_CONTAINER, *_OTHER_CONTAINERS))
_LOOKED_INTO: Final = frozenset(path[: dot.start()] for path in _BY_PATH for dot in re.finditer(r"\.", path))
"""Structs with rows for fields of theirs: one that is empty asks for none of them."""


class FieldFinding(msgspec.Struct, frozen=True):
    """A field that is set and not acted on: WARNED, REFUSED or NOT_APPLICABLE. `path` names the item, as
    `spec.containers[0].…`."""

    path: str
    support: Support
    why: str


class _At(msgspec.Struct, frozen=True):
    """A place in the pod: its path, the same with `[*]`, and the finding that would be made here."""

    path: str = ""
    pattern: str = ""
    row: FieldSupport | None = None
    row_path: str = ""

    def below(self, name: str) -> "_At":
        dot = "." if self.path else ""
        return self._moved(f"{self.path}{dot}{name}", f"{self.pattern}{dot}{name}")

    def item(self, index: int) -> "_At":
        return self._moved(f"{self.path}[{index}]", f"{self.pattern}[*]")

    def _moved(self, path: str, pattern: str) -> "_At":
        row = row_of(pattern)
        return _At(path, pattern, row, path) if row else _At(path, pattern, self.row, self.row_path)


@functools.cache  # there are as many patterns as fields in the types
def row_of(pattern: str) -> FieldSupport | None:
    """The row that speaks for exactly this field (``[*]`` for any item). What is said of a regular container is said of
    every container, unless a row of its own list says otherwise."""
    other = next((prefix for prefix in _OTHER_CONTAINERS if pattern.startswith(prefix)), "")
    of_any = _BY_PATH.get(_CONTAINER + pattern.removeprefix(other)) if other else None
    return _BY_PATH.get(pattern) or of_any


def unsupported_fields(pod: Pod, wanted: frozenset[Support] = UNSUPPORTED) -> tuple[FieldFinding, ...]:
    """The fields not acted on that the pod sets to something else than their default, each once, in order: those of
    the kinds that are wanted.

    Right for a plain pod and for a defaulted one: what `default_pod` fills in is never a finding.
    """
    return tuple(dict.fromkeys(_struct_findings(pod, _At(), wanted)))


class _Telling(NamedTuple):
    """Some fields of a struct."""

    fields: tuple[StructField, ...]
    defaults: tuple[object, ...]
    values_of: Callable[[object], tuple[Any, ...]]


def _struct_findings(struct: msgspec.Struct, at: _At, wanted: frozenset[Support]) -> Iterator[FieldFinding]:
    if not _is_finding(at.row, wanted):  # then most fields need no look
        telling = _telling_fields(type(struct), at.pattern, wanted)
        values = telling.values_of(struct)
        others = map(operator.is_not, values, telling.defaults)
        for field, value in itertools.compress(zip(telling.fields, values, strict=True), others):
            if value != field.default:
                yield from _findings(value, field.shape, at.below(field.name), wanted)
        return
    fields = struct_fields(type(struct)).values()
    given = [(field, value) for field in fields if (value := getattr(struct, field.attribute)) != field.default]
    if not given and (at.row_path == at.path or at.pattern not in _LOOKED_INTO):
        yield from _leaf_findings(struct, at, wanted)
    for field, value in given:
        yield from _findings(value, field.shape, at.below(field.name), wanted)


@functools.cache  # there are as many as types in places
def _telling_fields(struct: type[msgspec.Struct], pattern: str, wanted: frozenset[Support]) -> _Telling:
    """Fields of a struct at a place about which no row makes a finding that a row says something of, themselves or
    below."""
    dot = "." if pattern else ""
    every = struct_fields(struct).values()
    fields = tuple(field for field in every if _may_be_found(f"{pattern}{dot}{field.name}", wanted))
    values_of = attribute_values(tuple(field.attribute for field in fields))
    return _Telling(fields, tuple(field.default for field in fields), values_of)


def _may_be_found(pattern: str, wanted: frozenset[Support]) -> bool:
    """Whether a row about that field, or about one below it, makes a finding."""
    places = {pattern, *(pattern.replace(of, _CONTAINERS, 1) for of in _OTHER_LISTS if pattern.startswith(of))}
    return _is_finding(row_of(pattern), wanted) or not places.isdisjoint(_above_findings(wanted))


@functools.cache  # there are two kinds of pods
def _above_findings(wanted: frozenset[Support]) -> frozenset[str]:
    """Every field with another one below it about which a row makes a finding."""
    paths = [path for path, row in _BY_PATH.items() if _is_finding(row, wanted)]
    return frozenset(path[: sign.start()] for path in paths for sign in re.finditer(r"[.\[]", path))


def _is_finding(row: FieldSupport | None, wanted: frozenset[Support]) -> bool:
    return row is not None and row.support in wanted


def _findings(value: Any, shape: Shape, at: _At, wanted: frozenset[Support]) -> Iterator[FieldFinding]:
    if shape.kind is Kind.STRUCT:
        yield from _struct_findings(value, at, wanted)
    elif shape.kind is Kind.LIST and shape_of(shape.inner).kind is Kind.STRUCT:
        for index, item in enumerate(value):
            yield from _struct_findings(item, at.item(index), wanted)
    else:
        yield from _leaf_findings(value, at, wanted)


def _leaf_findings(value: object, at: _At, wanted: frozenset[Support]) -> Iterator[FieldFinding]:
    row = at.row
    if row is None or not _is_finding(row, wanted):
        return
    if not (at.row_path == at.path and value in row.accepted):
        yield FieldFinding(at.row_path, row.support, row.why)
