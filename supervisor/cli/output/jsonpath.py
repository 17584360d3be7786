"""Kubernetes' JSONPath templates: what they find in an object, and how that is written (client-go util/jsonpath)."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from supervisor.cli.output.jsonpath_parser import (
    Field,
    Filter,
    JsonPathError,
    Keyword,
    Path,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
    parse_template,
)

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
}
_GO_TYPES: Final = {bool: "bool", str: "string", int: "int64", float: "float64", dict: "map[string]interface {}"}
MAX_MATCHED_CHARS: Final = 4096
"""Longest text that a pattern is searched in, and longest pattern, in characters."""
_SAFE: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class JsonPath:
    """A template. Raises JsonPathError when it is none, and when it does not fit an object."""

    def __init__(self, template: str, *, allow_missing_keys: bool = True) -> None:
        self._pieces = parse_template(template)
        self._allow_missing = allow_missing_keys

    def find(self, obj: object) -> list[list[object]]:
        """Return the values of each text and path, ranges unrolled."""
        found, end = self._run(obj, 0, 0)
        if end < len(self._pieces):
            raise JsonPathError("not in range, nothing to end")
        return found

    def render(self, obj: Any) -> str:
        """The template filled in."""
        return "".join(" ".join(map(as_text, values)) for values in self.find(obj))

    def render_json(self, obj: object) -> str:
        """The template filled in, as JSON lists."""
        documents = (json.dumps(values, indent=4, sort_keys=True, ensure_ascii=False) for values in self.find(obj))
        return "".join(document.translate(_SAFE) + "\n" for document in documents)

    def _run(self, obj: Any, begin: int, depth: int) -> tuple[list[list[Any]], int]:
        """From that piece to the end of its range; where that stands."""
        found: list[list[Any]] = []
        at = begin
        while at < len(self._pieces):
            piece = self._pieces[at]
            match piece:
                case (Keyword("end"), *_):
                    if not depth:
                        raise JsonPathError("not in range, nothing to end")
                    return found, at
                case (Keyword("range"), *path):
                    found, at = self._ranged(found, self._walk([obj], tuple(path)), at, depth)
                case _:
                    found.append(self._walk([obj], piece))
            at += 1
        return found, at

    def _ranged(
        self, found: list[list[object]], values: Sequence[object], begin: int, depth: int
    ) -> tuple[list[list[object]], int]:
        """Run a range for each value, behind ``found``; the second is where its end stands."""
        end = self._end_of(begin)
        for value in values:
            inner, _ = self._run(value, begin + 1, depth + 1)
            found += inner
        return found, end

    def _end_of(self, begin: int) -> int:
        open_ranges = 0
        for at in range(begin, len(self._pieces)):
            match self._pieces[at]:
                case (Keyword("range"), *_):
                    open_ranges += 1
                case (Keyword("end"), *_):
                    open_ranges -= 1
                    if not open_ranges:
                        return at
        return len(self._pieces) - 1

    def _walk(self, values: list[object], path: Path) -> list[object]:
        for node in path:
            match node:
                case Text(value):
                    values = [value]
                case Field(name):
                    values = self._field(values, name)
                case Wildcard():
                    values = [child for value in values for child in _children(value)]
                case Recursive():
                    values = list(_below(values))
                case Slice():
                    values = [element for value in values if value is not None for element in _sliced(value, node)]
                case Union(paths):
                    values = [found for each in paths for found in self._walk(values, each)]
                case Filter():
                    values = [element for value in values for element in self._filtered(value, node)]
                case Keyword(name):
                    raise JsonPathError(f"unrecognized identifier {name}")
        return values

    def _field(self, values: list[object], name: str) -> list[object]:
        if name == "":
            return values
        found = [value[name] for value in values if isinstance(value, Mapping) and name in value]
        if not found and values and not self._allow_missing:
            raise JsonPathError(f"{name} is not found")
        return found

    def _filtered(self, value: object, wanted: Filter) -> Iterable[object]:
        if not isinstance(value, list):
            raise JsonPathError(f"{as_text(value)} is not array or slice and cannot be filtered")
        return [element for element in value if self._holds(element, wanted)]

    def _holds(self, element: object, wanted: Filter) -> bool:
        if wanted.operator == "exists":
            try:
                return bool(self._walk([element], wanted.left))
            except JsonPathError:
                return False
        try:
            left = self._walk([element], wanted.left)
        except JsonPathError:
            if not self._allow_missing:
                raise
            left = []
        right = self._walk([element], wanted.right)
        if not left or not right:
            return False
        if len(left) > 1 or len(right) > 1:
            raise JsonPathError("can only compare one element at a time")
        return _compared(left[0], wanted.operator, right[0])


def as_text(value: Any) -> str:
    """One value as a template shows it: texts as they are, maps and lists as JSON."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return ""
        case float() if value.is_integer():
            return str(int(value))
        case str() | int() | float():
            return str(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).translate(_SAFE)


def _compared(left: object, operation: str, right: object) -> bool:
    if operation == "=~":
        return _matches(left, right)
    compare = _COMPARE.get(operation)
    if compare is None:
        raise JsonPathError(f"unrecognized filter operator {operation}")
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if isinstance(left, bool) is not isinstance(right, bool) or not (numbers or type(left) is type(right)):
        raise JsonPathError("incompatible types for comparison")
    return compare(left, right)


def _matches(text: object, pattern: object) -> bool:
    if not isinstance(text, str) or not isinstance(pattern, str) or len(pattern) > MAX_MATCHED_CHARS:
        raise JsonPathError(f"regexp search only support string now but getting pattern: {pattern!r}, data: {text!r}")
    try:
        return re.search(pattern, text[:MAX_MATCHED_CHARS]) is not None
    except re.error as error:
        raise JsonPathError(f"error parsing regexp: {error}") from None


def _children(value: object) -> Iterable[object]:
    match value:
        case Mapping():
            return [value[key] for key in sorted(value)]
        case list() | str():
            return list(value)
    return ()


def _below(values: Iterable[object]) -> Iterable[object]:
    """Each with everything below it that has children, from the top; without recursion of ours."""
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield from (value,) if value else ()
        elif children := list(_children(value)):
            yield value
            waiting += children[::-1]


def _sliced(value: object, wanted: Slice) -> Sequence[object]:
    """(evalArray)"""
    if not isinstance(value, list):
        raise JsonPathError(f"{_GO_TYPES.get(type(value), type(value).__name__)} is not array or slice")
    length = len(value)
    start, stop = wanted.start or 0, wanted.stop
    if wanted.is_index:
        stop = start + 1
    if start < 0:
        start += length
    if stop is None:
        stop = length
    elif stop < 0 or (stop == 0 and wanted.is_index):
        stop += length
    if start == stop:
        return ()
    if not 0 <= start < length:
        raise JsonPathError(f"array index out of bounds: index {start}, length {length}")
    if not 0 <= stop <= length:
        raise JsonPathError(f"array index out of bounds: index {stop - 1}, length {length}")
    if start > stop:
        raise JsonPathError(f"starting index {start} is greater than ending index {stop}")
    if wanted.step is not None and wanted.step <= 0:
        raise JsonPathError("step must be > 0")
    return value[start : stop : wanted.step or 1]
