"""``--sort-by``: objects in the order of what a path finds in them (kubectl pkg/cmd/get, sorter.go)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from ipc.host.text.json_types import Json
from supervisor.cli.options import Failure
from supervisor.cli.output.jsonpath import JsonPath
from supervisor.cli.output.jsonpath_parser import JsonPathError, relaxed

_DIGITS: Final = re.compile(r"([0-9]+)")


def sorted_by(objects: Sequence[Json], path: str) -> list[Json]:
    """Objects in the order of what a path finds in them; those in which the path finds nothing come first. Raises
    Failure."""
    try:
        template = relaxed(path)
        parsed = JsonPath(template)
        keyed = [(_first(parsed, obj), obj) for obj in objects]
    except JsonPathError as error:
        raise Failure(f"unable to sort by {path}: {error}", prefix="error: ") from None
    if keyed and all(key is None for key, _ in keyed):
        raise Failure(f'couldn\'t find any field with path "{template}" in the list of objects', prefix="error: ")
    return [obj for _, obj in sorted(keyed, key=lambda pair: _key(pair[0]))]


def _first(path: JsonPath, obj: Json) -> object:
    return next((value for values in path.find(obj) for value in values), None)


def _key(value: object) -> tuple[object, ...]:
    """Numbers as such, quantities by their amount, texts as people count: ``web-2`` before ``web-10``."""
    match value:
        case None:
            return (0,)
        case bool() | int() | float():
            return (1, Fraction(value))
        case str():
            quantity = _quantity(value) if value[:1].isdigit() else None
            return (1, quantity) if quantity is not None else (2, *map(_part, _DIGITS.split(value)))
    return (3, str(value))


def _quantity(text: str) -> Fraction | None:
    from ipc.k8s.api.quantity import parse_quantity  # the API's types take longer to load than all of this

    try:
        return parse_quantity(text)
    except ValueError:
        return None


def _part(text: str) -> tuple[int, int, str]:
    """Digits count as a number, before any text."""
    return (0, int(text), "") if text.isdigit() else (1, 0, text)
