"""JSON values as Go compares them, and the error of a patch that cannot be applied."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence

from ipc.host.text.json_types import JsonObject, JsonValue


class PatchError(Exception):
    """The patch is not one, or does not fit the object."""


def parse_object(text: bytes | str) -> JsonObject:
    """A JSON object; nothing and null are an empty one. Raises PatchError (apimachinery mergepatch.ErrBadJSONDoc)."""
    found = parse_json(text) if text else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PatchError("invalid JSON document")
    return found


def parse_json(text: bytes | str) -> JsonValue:
    """Any JSON value. Raises PatchError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise PatchError("invalid JSON document") from None


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equal in value and type: ``1`` is neither ``true`` nor ``1.0`` (reflect.DeepEqual)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def identity(value: JsonValue) -> Hashable:
    """Key under which the same value is found again in a dictionary."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return type(value), value


def shown(value: JsonValue) -> str:
    """A scalar as Go's ``%v`` prints it: what scalars are sorted by."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
    return str(value)


def positions(values: Iterable[Hashable]) -> dict[Hashable, int]:
    """Where each first stands."""
    found: dict[Hashable, int] = {}
    for index, value in enumerate(values):
        found.setdefault(value, index)
    return found


def without_repeats(scalars: Sequence[JsonValue]) -> list[JsonValue]:
    return list({identity(value): value for value in reversed(scalars)}.values())[::-1]
