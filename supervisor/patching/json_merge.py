"""JSON merge patch (RFC 7386), and one made of three objects (apimachinery pkg/util/jsonmergepatch/patch.go)."""

from __future__ import annotations

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.patching.values import same


def json_merge(original: JsonValue, patch: JsonValue) -> JsonValue:
    """The value after the patch: a null takes a field away, an object merges, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = json_merge(merged.get(key), value)
    return merged


def json_merge_patch(original: JsonObject, modified: JsonObject) -> JsonObject:
    """The patch that makes the modified object of the original one."""
    patch: JsonObject = {}
    for key, value in modified.items():
        before = original.get(key)
        if key not in original or not (isinstance(before, dict) and isinstance(value, dict)):
            if key not in original or not same(before, value):
                patch[key] = value
        elif found := json_merge_patch(before, value):
            patch[key] = found
    return patch | dict.fromkeys(original.keys() - modified.keys())


def three_way_json_merge_patch(original: JsonObject, modified: JsonObject, current: JsonObject) -> JsonObject:
    """Additions and changes from the current object to the modified one, deletions from the original to the modified
    (CreateThreeWayJSONMergePatch)."""
    changes = keep_or_delete_null(json_merge_patch(current, modified), keep_null=False)
    deletions = keep_or_delete_null(json_merge_patch(original, modified), keep_null=True)
    return _both(deletions, changes)


def keep_or_delete_null(value: JsonObject, *, keep_null: bool) -> JsonObject:
    """Keep only the fields that are null, or only those that are not, at any depth; lists are left as they are
    (keepOrDeleteNullInObj)."""
    found: JsonObject = {}
    for key, item in value.items():
        if isinstance(item, dict):
            below = keep_or_delete_null(item, keep_null=keep_null)
            if below or (not keep_null and not item):
                found[key] = below
        elif (item is None) is keep_null:
            found[key] = item
    return found


def _both(one: JsonObject, other: JsonObject) -> JsonObject:
    """Two patches as one (evanphx/json-patch MergeMergePatches): nulls of both are kept."""
    merged = dict(one)
    for key, value in other.items():
        before = merged.get(key)
        merged[key] = _both(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged
