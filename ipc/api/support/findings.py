"""Findings about fields of a pod that Rootlet does not act on: the table of support held against a pod. Pure."""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ipc.api.schema import Kind, Shape, shape_of, struct_fields
from ipc.api.support.table import ROWS, FieldSupport, Support
from ipc.api.v1.pod import Pod

_BY_PATH: Final[Mapping[str, FieldSupport]] = {row.path: row for row in ROWS}
_CONTAINER: Final = "spec.containers[*]"
_OTHER_CONTAINERS: Final = ("spec.initContainers[*]", "spec.ephemeralContainers[*]")
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


def unsupported_fields(pod: Pod) -> tuple[FieldFinding, ...]:
    """The fields not acted on that the pod sets to something else than their default, each once, in order.

    Right for a plain pod and for a defaulted one: what `default_pod` fills in is never a finding.
    """
    return tuple(dict.fromkeys(_struct_findings(pod, _At())))


def _struct_findings(struct: msgspec.Struct, at: _At) -> Iterator[FieldFinding]:
    fields = struct_fields(type(struct)).values()
    given = [(field, value) for field in fields if (value := getattr(struct, field.attribute)) != field.default]
    if not given and (at.row_path == at.path or at.pattern not in _LOOKED_INTO):
        yield from _leaf_findings(struct, at)
    for field, value in given:
        yield from _findings(value, field.shape, at.below(field.name))


def _findings(value: Any, shape: Shape, at: _At) -> Iterator[FieldFinding]:
    if shape.kind is Kind.STRUCT:
        yield from _struct_findings(value, at)
    elif shape.kind is Kind.LIST and shape_of(shape.inner).kind is Kind.STRUCT:
        for index, item in enumerate(value):
            yield from _struct_findings(item, at.item(index))
    else:
        yield from _leaf_findings(value, at)


def _leaf_findings(value: Any, at: _At) -> Iterator[FieldFinding]:
    row = at.row
    if row is None or row.support in (Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE):
        return
    if not (at.row_path == at.path and value in row.accepted):
        yield FieldFinding(at.row_path, row.support, row.why)
