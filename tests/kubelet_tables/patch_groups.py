"""Adapters of the groups about patches: strategic merge and JSON merge, applied and made of two or three objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ipc.host.text.json_types import JsonObject
from ipc.k8s.patching.strategic_diff import three_way_patch, two_way_patch
from ipc.k8s.patching.strategic_merge import DELETE_SCALARS, MERGE, RETAIN_KEYS, SET_ORDER, strategic_merge
from ipc.k8s.patching.strategic_schema import FieldPatch, MapOf, Opaque, Schema
from ipc.k8s.patching.values import PatchError, parse_object, shown
from supervisor.patching.json_merge import keep_or_delete_null, three_way_json_merge_patch
from tests.kubelet_tables.later import Result
from tests.kubelet_tables.translate import Json


class _Precise:
    """PrecisionItem of upstream's tests."""

    def field(self, name: str) -> FieldPatch:
        if name not in ("name", "int32", "int64", "float32", "float64"):
            raise PatchError(f'unable to find api field in struct PrecisionItem for the json field "{name}"')
        return FieldPatch(below=Opaque())


class _MergeItem:
    """MergeItem of upstream's tests."""

    def field(self, name: str) -> FieldPatch:
        if name not in _MERGE_ITEM:
            raise PatchError(f'unable to find api field in struct MergeItem for the json field "{name}"')
        return _MERGE_ITEM[name]


_ITEM: Final = _MergeItem()
_LEAF: Final = Opaque()
_MERGE_ITEM: Final[Mapping[str, FieldPatch]] = {
    **dict.fromkeys(("name", "value", "other", "nonMergingIntList"), FieldPatch(below=_LEAF)),
    "mergingList": FieldPatch(below=_ITEM, strategy="merge", merge_key="name"),
    "mergeItemPtr": FieldPatch(below=_ITEM, strategy="merge", merge_key="name"),
    "nonMergingList": FieldPatch(below=_ITEM),
    "mergingIntList": FieldPatch(below=_LEAF, strategy="merge"),
    "simpleMap": FieldPatch(below=MapOf(_LEAF)),
    "replacingItem": FieldPatch(below=_LEAF, strategy="replace"),
    "retainKeysMap": FieldPatch(below=_ITEM, retain_keys=True),
    "retainKeysMergingList": FieldPatch(below=_ITEM, strategy="merge", merge_key="name", retain_keys=True),
    "jsonItem": FieldPatch(below=_LEAF),
}
_SCHEMAS: Final[Mapping[str, Schema]] = {"MergeItem": _ITEM, "PrecisionItem": _Precise()}


def _attempt(case: Json, make: Callable[[], Json]) -> Result:
    """Whether there is an error is what upstream asserts; merging lists have no order there."""
    failed = case["expected_error"] is not None
    expected = _sorted(case["expected"], _SCHEMAS[case["schema"]])
    try:
        got = _sorted(make(), _SCHEMAS[case["schema"]])
    except PatchError:
        return (failed, expected), (True, None)
    return (failed, expected), (False, got)


def _document(value: Any) -> JsonObject:
    """Document of a case; what it says is not JSON is not read as such."""
    if isinstance(value, dict) and "$not_json" in value:
        return parse_object(value["$not_json"])
    found: JsonObject = value or {}
    return found


def _merge(case: Json) -> Result:
    schema = _SCHEMAS[case["schema"]]
    original, patch = case["original"], case["patch"]
    return _attempt(case, lambda: strategic_merge(_document(original), _document(patch), schema))


def _two_way(case: Json) -> Result:
    schema = _SCHEMAS[case["schema"]]
    original, modified = case["original"], case["modified"]
    return _attempt(case, lambda: two_way_patch(_document(original), _document(modified), schema))


def _three_way(case: Json) -> Result:
    schema = _SCHEMAS[case["schema"]]
    original, modified, current = (_document(case[name]) for name in ("original", "modified", "current"))
    return _attempt(case, lambda: three_way_patch(original, modified, current, schema, overwrite=case["overwrite"]))


def _sorted(value: Any, schema: Schema) -> Any:
    """With merging lists sorted, as upstream's tests compare (sortMergeListsByName)."""
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        if key == RETAIN_KEYS or key.startswith(DELETE_SCALARS):
            found[key] = sorted(item, key=shown)
        elif key.startswith((SET_ORDER, "$")):
            found[key] = item
        else:
            found[key] = _sorted_field(item, key, schema)
    return found


def _sorted_field(item: Any, key: str, schema: Schema) -> Any:
    try:
        field = schema.field(key)
    except PatchError:
        return item
    if isinstance(item, dict):
        return _sorted(item, field.below)
    if isinstance(item, list) and field.strategy == MERGE:
        if all(isinstance(one, dict) for one in item):
            return sorted((_sorted(one, field.below) for one in item), key=lambda one: shown(one.get("name")))
        return sorted(item, key=shown)
    return item


def _json_three_way(case: Json) -> Result:
    original, modified, current = (_document(case[name] or None) for name in ("original", "modified", "current"))
    got = three_way_json_merge_patch(original, modified, current)
    return (case["expected_error"], case["expected"]), (None, got)


def _keep_or_delete_null(case: Json) -> Result:
    got = keep_or_delete_null(case["object"] or {}, keep_null=case["keep_null"])
    return case["expected"] or {}, got


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "strategic_merge_patch": _merge,
    "strategic_two_way_patch": _two_way,
    "strategic_three_way_patch": _three_way,
    "json_three_way_merge_patch": _json_three_way,
    "json_keep_or_delete_null": _keep_or_delete_null,
}
