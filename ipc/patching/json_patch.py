"""JSON patch (RFC 6902) by the library jsonpatch, with bounds (apiserver endpoints/handlers/patch.go, jsonPatcher)."""

from __future__ import annotations

from typing import Final

import jsonpatch
import jsonpointer

from ipc.patching.values import PatchError
from ipc.text.json_types import JsonValue

MAX_OPERATIONS: Final = 10_000
"""Most operations of one patch."""
MAX_COPIED_VALUES: Final = 100_000
"""Most values that all copies of one patch may make: each copy can double what the next one copies."""


def json_patch(original: JsonValue, operations: JsonValue) -> JsonValue:
    """The value after all operations; none of them counts when one fails. Raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"the patch has {len(operations)} operations, more than {MAX_OPERATIONS}")
    patched, left = original, MAX_COPIED_VALUES
    try:
        for operation in operations:
            left -= _copied(patched, operation)
            if left < 0:
                raise PatchError(f"the patch copies more than {MAX_COPIED_VALUES} values")
            patched = jsonpatch.JsonPatch([operation]).apply(patched, in_place=patched is not original)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        raise PatchError(str(error)) from None
    return patched


def _copied(value: JsonValue, operation: JsonValue) -> int:
    if not isinstance(operation, dict) or operation.get("op") != "copy":
        return 0
    source = operation.get("from")
    return _count(jsonpointer.resolve_pointer(value, source)) if isinstance(source, str) else 0


def _count(value: JsonValue) -> int:
    """Values in it, itself included; it never looks at many more than there may be."""
    found, waiting = 0, [value]
    while waiting and found <= MAX_COPIED_VALUES:
        item = waiting.pop()
        found += 1
        if isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return found
