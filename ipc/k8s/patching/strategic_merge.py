"""Application of a strategic merge patch (apimachinery pkg/util/strategicpatch/patch.go, StrategicMergePatch).

Values are never changed in place: what comes out may share parts with what went in. Work grows with the sizes of both,
not with their product.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.patching.strategic_schema import FieldPatch, Schema
from ipc.k8s.patching.values import PatchError, identity, positions, same, without_repeats

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
MERGE: Final = "merge"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_SCALARS: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"
_PARALLEL: Final = (RETAIN_KEYS, DELETE_SCALARS, SET_ORDER)
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"
_BAD_RETAIN_KEYS: Final = "invalid patch format of retainKeys"
_BAD_SCALARS: Final = "invalid patch format of primitive list"


class MergeOptions(msgspec.Struct, frozen=True):
    """Whether the patch is carried out, or added to another one."""

    carry_out: bool = True
    """Parallel lists (of deletions, of an order) are carried out; False: they are kept."""
    drop_nulls: bool = True
    """A null of a field that is not there says nothing; False: it is kept, for whoever gets the patch."""


def strategic_merge(original: JsonObject, patch: JsonObject, schema: Schema) -> JsonObject:
    """The object after the patch. Raises PatchError."""
    return merge_maps(original, patch, schema, MergeOptions())


def merge_maps(original: JsonObject, patch: JsonObject, schema: Schema, options: MergeOptions) -> JsonObject:
    """Upstream's mergeMap. Raises PatchError."""
    if DIRECTIVE in patch:
        return _by_directive(patch)
    merged, rest = _retained(dict(original), dict(patch), options)
    for key in [key for key in rest if key.startswith(SET_ORDER)]:
        _merge_ordered(merged, rest, key, schema, options)
    for key, value in rest.items():
        if key.startswith(DELETE_SCALARS):
            _delete_scalars(merged, key, value, schema, options)
        else:
            _merge_field(merged, key, value, schema, options)
    return merged


def _by_directive(patch: JsonObject) -> JsonObject:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
    raise PatchError(f"unknown patch type {patch[DIRECTIVE]!r}")


def _retained(original: JsonObject, patch: JsonObject, options: MergeOptions) -> tuple[JsonObject, JsonObject]:
    """Rest of the original, and the patch without ``$retainKeys`` (applyRetainKeysDirective)."""
    if RETAIN_KEYS not in patch:
        return original, patch
    keys = patch.pop(RETAIN_KEYS)
    if not options.carry_out:
        if RETAIN_KEYS in original and not same(original[RETAIN_KEYS], keys):
            raise PatchError(f"{original[RETAIN_KEYS]} and {keys} differ: two patches retain different keys")
        return {RETAIN_KEYS: keys, **original}, patch
    if not isinstance(keys, list):
        raise PatchError(_BAD_RETAIN_KEYS)
    left = {key for key in keys if isinstance(key, str)}
    said = {
        key for key, value in patch.items() if value is not None and not key.startswith((DELETE_SCALARS, SET_ORDER))
    }
    if not said <= left:
        raise PatchError(_BAD_RETAIN_KEYS)
    return {key: value for key, value in original.items() if key in left}, patch


def _merge_ordered(merged: JsonObject, patch: JsonObject, key: str, schema: Schema, options: MergeOptions) -> None:
    """A list whose order the patch says (mergePatchIntoOriginal); it and its order leave the patch."""
    order = patch.pop(key)
    if not options.carry_out:
        if key in merged and not same(merged[key], order):
            raise PatchError(_BAD_ORDER)
        merged[key] = order
    name = _name_after(key, SET_ORDER, _BAD_ORDER)
    if not isinstance(order, list):
        raise PatchError(_BAD_ORDER)
    original, changes = _list(merged.get(name, []), name), _list(patch.get(name, []), name)
    field = schema.field(name)
    _check_order(changes, order, field.merge_key)
    if name not in merged and name not in patch:
        return
    if name in merged and name in patch:
        found = _merge_lists(original, changes, field, options)
    else:
        found = original if name in merged else _emptied_of_directives(changes, _PARALLEL if options.carry_out else ())
    patch.pop(name, None)
    element_kind(original, changes)
    merged[name] = _in_order(found, order, original, field.merge_key)


def _name_after(key: str, prefix: str, wrong: str) -> str:
    found, slash, name = key.partition("/")
    if not slash or found != prefix:
        raise PatchError(wrong)
    return name


def _list(value: JsonValue, name: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise PatchError(f"{name}: expected a list")
    return value


def _check_order(changes: Sequence[JsonValue], order: Sequence[JsonValue], key: str) -> None:
    """Items of the patch stand in the order that it says (validatePatchWithSetOrderList)."""
    if not changes or not order:
        return
    kept = [item for item in changes if not (isinstance(item, dict) and DIRECTIVE in item)] if key else changes
    rest = iter([_key_of(item, key) for item in order])
    if not all(_key_of(item, key) in rest for item in kept):  # `in` moves the iterator on
        raise PatchError(f"The order in patch list:\n{changes}\n doesn't match {SET_ORDER} list:\n{order}\n")


def _delete_scalars(merged: JsonObject, key: str, gone: JsonValue, schema: Schema, options: MergeOptions) -> None:
    if not options.carry_out:
        merged[key] = gone
        return
    name = _name_after(key, DELETE_SCALARS, _BAD_SCALARS)
    if isinstance(found := merged.get(name), list):
        schema.field(name)
        deleted = {identity(value) for value in _list(gone, key)}
        merged[name] = [value for value in found if identity(value) not in deleted]


def _merge_field(merged: JsonObject, key: str, value: JsonValue, schema: Schema, options: MergeOptions) -> None:
    if value is None:
        merged.pop(key, None)
        if options.drop_nulls:
            return
    if key not in merged or type(merged[key]) is not type(value):
        found = _emptied_of_directives(value, _PARALLEL if options.carry_out else ())
        merged[key] = _without_nulls(found) if options.drop_nulls else found
        return
    field = schema.field(key)
    if isinstance(value, dict):
        replaces = field.strategy == REPLACE
        merged[key] = value if replaces else merge_maps(merged[key], value, field.below, options)
    elif isinstance(value, list):
        merged[key] = _merge_lists(merged[key], value, field, options)
    else:
        merged[key] = value


def _emptied_of_directives(value: JsonValue, parallel: tuple[str, ...]) -> JsonValue:
    """A value where there was none: a directive has nothing to act on (dropDirectives)."""
    if isinstance(value, dict):
        kept = _by_directive(value) if DIRECTIVE in value else value
        left = (item for item in kept.items() if not parallel or not item[0].startswith(parallel))
        return {key: _emptied_of_directives(item, parallel) for key, item in left}
    if isinstance(value, list):
        items = (item for item in value if not (isinstance(item, dict) and DIRECTIVE in item))
        return [_emptied_of_directives(item, parallel) for item in items]
    return value


def _without_nulls(value: JsonValue) -> JsonValue:
    """Fields that are null are not there; items of lists are (discardNullValuesFromPatch)."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value


def _merge_lists(
    original: list[JsonValue], patch: list[JsonValue], field: FieldPatch, options: MergeOptions
) -> list[JsonValue]:
    """Upstream's mergeSliceHandler and mergeSlice."""
    if field.strategy != MERGE:
        return patch
    if not original and not patch:
        return original
    if element_kind(original, patch) is not dict:
        return _in_order(without_repeats([*original, *patch]), patch, original, field.merge_key)
    if not field.merge_key:
        raise PatchError("cannot merge lists without merge key")
    left, changes = _directives_done(original, patch, field.merge_key)
    return _in_order(_merged_items(left, changes, field, options), changes, left, field.merge_key)


def element_kind(*lists: Sequence[JsonValue]) -> type:
    """The type that all items have (sliceElementType). Raises PatchError for several, none, or lists."""
    kinds = {type(item) for items in lists for item in items}
    if list in kinds:
        raise PatchError("lists of lists are not supported")
    if len(kinds) != 1:
        raise PatchError("list element types are not identical" if kinds else "no elements in any of the given slices")
    return kinds.pop()


def _directives_done(
    original: list[JsonValue], patch: list[JsonValue], key: str
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Carries out ``$patch`` among the items (mergeSliceWithSpecialElements)."""
    changes = [item for item in patch if DIRECTIVE not in item]
    deleted: set[Hashable] = set()
    replaced = False
    for item in (item for item in patch if DIRECTIVE in item):
        match item[DIRECTIVE]:
            case "delete":
                deleted.add(_key_of(item, key))
            case "replace":
                replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case other:
                raise PatchError(f"unknown patch type {other!r}")
    if replaced:
        return changes, []
    return [item for item in original if key not in item or identity(item[key]) not in deleted], changes


def _merged_items(
    original: list[JsonValue], changes: list[JsonValue], field: FieldPatch, options: MergeOptions
) -> list[JsonValue]:
    """Each item of the patch into the one with its key, or behind them all (mergeSliceWithoutSpecialElements)."""
    merged = list(original)
    places: dict[Hashable, int] = {}
    for index, item in enumerate(merged):
        if field.merge_key in item:
            places.setdefault(identity(item[field.merge_key]), index)
    for item in changes:
        place = places.setdefault(_key_of(item, field.merge_key), len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = merge_maps(merged[place], item, field.below, options)
    return merged


def _key_of(item: JsonValue, key: str) -> Hashable:
    """Identity of an item: of its merge key, or of the scalar itself. Raises PatchError."""
    if not key:
        return identity(item)
    if not isinstance(item, dict):
        raise PatchError(f"expected an object with {key!r}")
    if key not in item:
        raise PatchError(f"map: {item} does not contain declared merge key: {key}")
    return identity(item[key])


def _in_order(
    items: list[JsonValue], order: Iterable[JsonValue], before: Iterable[JsonValue], key: str
) -> list[JsonValue]:
    """Items that the patch names in its order, among them the others where they were (normalizeElementOrder)."""
    said = positions(_key_of(item, key) for item in order)
    was = positions(_key_of(item, key) for item in before)
    keyed = [(_key_of(item, key), item) for item in items]
    named = [item for _, item in sorted((pair for pair in keyed if pair[0] in said), key=lambda pair: said[pair[0]])]
    named = _deletions_last(named, key)
    rest = sorted((pair for pair in keyed if pair[0] not in said), key=lambda pair: was.get(pair[0], -1))
    others = _deletions_last([item for _, item in rest], key)
    return _interleaved(others, named, was, key)


def _deletions_last(items: list[JsonValue], key: str) -> list[JsonValue]:
    return sorted(items, key=lambda item: item.get(DIRECTIVE) == DELETE) if key else items


def _interleaved(
    others: list[JsonValue], named: list[JsonValue], was: dict[Hashable, int], key: str
) -> list[JsonValue]:
    """Upstream's mergeSortedSlice."""
    found: list[JsonValue] = []
    index = 0
    for item in named:
        place = was.get(_key_of(item, key))
        while place is not None and index < len(others):
            other = was.get(_key_of(others[index], key))
            if other is None or other >= place:
                break
            found.append(others[index])
            index += 1
        found.append(item)
    return found + others[index:]
