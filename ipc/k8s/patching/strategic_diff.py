"""Strategic merge patches made of two or three objects (apimachinery pkg/util/strategicpatch/patch.go,
CreateTwoWayMergePatch and CreateThreeWayMergePatch). Nothing is changed in place."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

import msgspec

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.patching.strategic_merge import (
    DELETE,
    DELETE_SCALARS,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    MergeOptions,
    element_kind,
    merge_maps,
)
from ipc.k8s.patching.strategic_schema import FieldPatch, Schema
from ipc.k8s.patching.values import PatchError, identity, positions, same, shown, without_repeats


class DiffOptions(msgspec.Struct, frozen=True):
    """Parts of a difference that the patch has."""

    set_order: bool = False
    changes: bool = True
    """Changes and additions."""
    deletions: bool = True
    retain_keys: bool = False


def two_way_patch(original: JsonObject, modified: JsonObject, schema: Schema) -> JsonObject:
    """The patch that makes the modified object of the original one. Raises PatchError."""
    return _diff_maps(original, modified, schema, DiffOptions(set_order=True))


def three_way_patch(
    original: JsonObject, modified: JsonObject, current: JsonObject, schema: Schema, *, overwrite: bool = True
) -> JsonObject:
    """The patch that brings the current object to the modified one and takes away what only the original had.

    Without ``overwrite`` a field that was changed otherwise meanwhile is an error. Raises PatchError.
    """
    delta = _diff_maps(current, modified, schema, DiffOptions(set_order=True, deletions=False))
    deletions = _diff_maps(original, modified, schema, DiffOptions(set_order=True, changes=False))
    patch = merge_maps(deletions, delta, schema, MergeOptions(carry_out=False, drop_nulls=False))
    if not overwrite:
        changed = _diff_maps(original, current, schema, DiffOptions())
        if _maps_conflict(patch, changed, schema):
            raise PatchError(
                f"patch:\n{json.dumps(patch, indent=2)}\n"
                f"conflicts with changes made from original to current:\n{json.dumps(changed, indent=2)}\n"
            )
    return patch


def _diff_maps(original: JsonObject, modified: JsonObject, schema: Schema, options: DiffOptions) -> JsonObject:
    patch: JsonObject = {}
    below = msgspec.structs.replace(options, retain_keys=False)
    for key, value in modified.items():
        if key not in original:
            if options.changes:
                patch[key] = value
        elif key == DIRECTIVE:
            _diff_directive(original[key], value, patch)
        elif type(original[key]) is not type(value):
            if options.changes:
                patch[key] = value
        elif not same(original[key], value):
            patch |= _diff_field(key, original[key], value, schema, below)
        elif isinstance(value, dict | list) and value:
            patch |= _diff_same(key, value, schema, options)
    if options.deletions:
        patch |= dict.fromkeys(original.keys() - modified.keys())
    kept = sorted(key for key, value in modified.items() if value is not None)
    went = any(value is not None and key not in modified for key, value in original.items())
    if options.retain_keys and kept and (patch or went):
        patch[RETAIN_KEYS] = kept
    return patch


def _diff_same(key: str, value: JsonValue, schema: Schema, options: DiffOptions) -> JsonObject:
    """Nothing, but of an object that is replaced as a whole: whether it differs is not looked at (handleMapDiff)."""
    if not isinstance(value, dict) or not options.changes:
        return {}
    try:
        replaces = schema.field(key).strategy == REPLACE
    except PatchError:
        return {}
    return {key: value} if replaces else {}


def _diff_directive(original: JsonValue, modified: JsonValue, patch: JsonObject) -> None:
    if not isinstance(original, str) or not isinstance(modified, str):
        raise PatchError(f"invalid value for special key: {DIRECTIVE}")
    if original != modified:
        patch[DIRECTIVE] = modified


def _diff_field(key: str, original: JsonValue, modified: JsonValue, schema: Schema, options: DiffOptions) -> JsonObject:
    """Part of the patch about a field whose two values have one type and differ."""
    changed = {key: modified} if options.changes else {}
    if not isinstance(modified, dict | list):
        return changed
    field = schema.field(key)
    if isinstance(modified, list):
        return _diff_list(key, original, modified, field, options) if field.strategy == MERGE else changed
    if field.strategy == REPLACE:
        return changed
    found = _diff_maps(original, modified, field.below, msgspec.structs.replace(options, retain_keys=field.retain_keys))
    return {key: found} if found else {}


def _diff_list(
    key: str, original: list[JsonValue], modified: list[JsonValue], field: FieldPatch, options: DiffOptions
) -> JsonObject:
    """The list's own changes, with parallel lists of deletions and of its order (diffLists)."""
    if not original:
        return {key: modified} if modified and options.changes else {}
    if element_kind(original, modified) is dict:
        changes, order = _diff_objects(original, modified, field, options)
        parts = {key: changes, f"{SET_ORDER}/{key}": order}
    else:
        added, deleted = _diff_scalars(original, modified, options)
        said = bool(options.deletions and deleted) or options.changes
        order = modified if options.set_order and said else []
        parts = {key: added, f"{DELETE_SCALARS}/{key}": deleted, f"{SET_ORDER}/{key}": order}
    return {name: items for name, items in parts.items() if items}


def _diff_scalars(
    original: list[JsonValue], modified: list[JsonValue], options: DiffOptions
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Added and deleted ones (diffListsOfScalars): two sorted lists, one beside the other."""
    before, after = sorted(original, key=shown), sorted(modified, key=shown)
    added: list[JsonValue] = []
    deleted: list[JsonValue] = []
    i = j = 0
    while i < len(before) or j < len(after):
        if i < len(before) and j < len(after) and shown(before[i]) == shown(after[j]):
            i, j = i + 1, j + 1
        elif i >= len(before) or (j < len(after) and shown(before[i]) > shown(after[j])):
            added.append(after[j])
            j += 1
        else:
            deleted.append(before[i])
            i += 1
    order = positions(map(identity, modified))
    in_order = sorted(added, key=lambda value: order[identity(value)])
    return in_order if options.changes else [], without_repeats(deleted) if options.deletions else []


def _diff_objects(
    original: list[JsonValue], modified: list[JsonValue], field: FieldPatch, options: DiffOptions
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Changes, deletions behind them, and the order of the items where it must be said (diffListsOfMaps)."""
    key = field.merge_key
    before: dict[Hashable, list[JsonObject]] = {}
    for item in reversed(original):
        before.setdefault(identity(_key(item, key)), []).append(item)
    after = {identity(_key(item, key)) for item in modified}
    below = msgspec.structs.replace(options, retain_keys=field.retain_keys)
    changes: list[JsonValue] = []
    for item in modified:
        was = before.get(identity(item[key]))
        if not was:
            changes += [item] if options.changes else []
        elif found := _diff_maps(was.pop(), item, field.below, below):
            changes.append({**found, key: item[key]})
    if options.deletions:
        changes += [{key: item[key], DIRECTIVE: DELETE} for item in original if identity(item[key]) not in after]
    moved = [identity(item[key]) for item in original] != [identity(item[key]) for item in modified]
    said = bool(changes) or (options.changes and moved)
    return changes, [{key: item[key]} for item in modified] if options.set_order and said else []


def _key(item: JsonObject, key: str) -> JsonValue:
    if key not in item:
        raise PatchError(f"map: {item} does not contain declared merge key: {key}")
    return item[key]


def _conflict(one: JsonValue, other: JsonValue, below: Schema, field: FieldPatch | None) -> bool:
    """Upstream's mergingMapFieldsHaveConflicts."""
    strategy = field.strategy if field else ""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.get(DIRECTIVE) != other.get(DIRECTIVE):
            return True
        return strategy != REPLACE and _maps_conflict(one, other, below)
    if isinstance(one, list) and isinstance(other, list):
        return _lists_conflict(one, other, below, field)
    return not same(one, other)


def _maps_conflict(one: JsonObject, other: JsonObject, schema: Schema) -> bool:
    for key in one.keys() & other.keys() - {DIRECTIVE, RETAIN_KEYS}:
        field = schema.field(key)
        if _conflict(one[key], other[key], field.below, field):
            return True
    return False


def _lists_conflict(one: list[JsonValue], other: list[JsonValue], below: Schema, field: FieldPatch | None) -> bool:
    kind = element_kind(one, other)
    if field is not None and field.strategy == MERGE:
        return kind is dict and _objects_conflict(one, other, below, field.merge_key)
    if len(one) != len(other):
        return True
    if kind is not dict:
        one, other = _sorted_scalars(one), _sorted_scalars(other)
    return any(_conflict(left, right, below, None) for left, right in zip(one, other, strict=False))


def _objects_conflict(one: list[JsonValue], other: list[JsonValue], below: Schema, key: str) -> bool:
    theirs = {shown(_key(item, key)): item for item in other}
    ours = {shown(_key(item, key)): item for item in one}
    return any(_conflict(ours[name], theirs[name], below, None) for name in ours.keys() & theirs.keys())


def _sorted_scalars(values: Sequence[JsonValue]) -> list[JsonValue]:
    return sorted(without_repeats(values), key=shown)
