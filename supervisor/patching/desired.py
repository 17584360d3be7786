"""Lists whose items have no key of their own, fields that say one thing together: a manifest states them as a whole.

Upstream's three-way merge finds items again by their merge key, also where several items have one key or an item has
none: then what comes of it is not what the manifest says (kubernetes/kubectl 1750, kubernetes/kubernetes 132422). It
leaves a probe with two handlers where a command has given it another one. Different on purpose: such a list, and such
fields, become what the manifest states. Work grows with the sizes of the objects. Pure; nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.patching.strategic_merge import MERGE
from ipc.k8s.patching.strategic_schema import FieldPatch, Schema
from ipc.k8s.patching.values import identity


def as_desired(
    original: JsonObject, modified: JsonObject, current: JsonObject, schema: Schema
) -> tuple[JsonObject, JsonObject]:
    """The original and the current object as a three-way merge may have them: what the modified one states as a whole
    is there already, so that the merge leaves it alone.

    Raises PatchError for a field of the modified object that its type has not.
    """
    before, now = dict(original), dict(current)
    for key, value in modified.items():
        if isinstance(value, list):
            _state_list(before, now, key, value, schema.field(key))
        elif isinstance(value, dict) and isinstance(now.get(key), dict):
            field = schema.field(key)
            was, now[key] = _of_one(_object(before.get(key)), value, now[key], field)
            if key in before:
                before[key] = was
    return before, now


def _state_list(before: JsonObject, now: JsonObject, key: str, value: list[JsonValue], field: FieldPatch) -> None:
    """Put the list into both, or its items into theirs."""
    if field.strategy != MERGE:
        return
    lists = [value, _list(before.get(key)), _list(now.get(key))]
    if not all(_identifies(field.merge_key, items) for items in lists):
        now[key] = value
        if key in before:
            before[key] = value
    elif field.merge_key and key in now:
        was, is_now = (_by_key(items, field.merge_key) for items in lists[1:])
        for item in value:
            name = identity(item[field.merge_key])
            if name in is_now:
                found = _of_one(was.get(name, {}), item, is_now[name], field)
                is_now[name] = found[1]
                if name in was:
                    was[name] = found[0]
        now[key] = list(is_now.values())
        if key in before:
            before[key] = list(was.values())


def _of_one(
    original: JsonObject, modified: JsonObject, current: JsonObject, field: FieldPatch
) -> tuple[JsonObject, JsonObject]:
    """One value of both, less what others have said in fields that say one thing together."""
    if not modified.keys().isdisjoint(field.together):
        unsaid = field.together - modified.keys()
        current = {key: value for key, value in current.items() if key not in unsaid}
    return as_desired(original, modified, current, field.below)


def _identifies(merge_key: str, items: list[JsonValue]) -> bool:
    """Whether each item has a key that no other has; a scalar is its own."""
    if not merge_key:
        return len({identity(item) for item in items}) == len(items)
    if not all(isinstance(item, dict) and merge_key in item for item in items):
        return False
    return len(_by_key(items, merge_key)) == len(items)


def _by_key(items: list[Any], merge_key: str) -> dict[Hashable, JsonObject]:
    return {identity(item[merge_key]): item for item in items}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
