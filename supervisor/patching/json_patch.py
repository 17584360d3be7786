"""JSON patch (RFC 6902) by the library jsonpatch, with bounds (apiserver endpoints/handlers/patch.go, jsonPatcher)."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

import jsonpatch
import jsonpointer

from ipc.host.text.json_types import Json, JsonValue
from ipc.k8s.patching.values import PatchError

MAX_OPERATIONS: Final = 10_000
"""Most operations of one patch."""
MAX_COPIED_BYTES: Final = 3 << 20
"""Most JSON that all copies of one patch may make, in bytes: each can double what the next one copies (apiserver
pkg/server/config.go, JSONPatchMaxCopyBytes)."""

MAX_COPIED_VALUES: Final = 100_000
"""Most values that all copies of one patch may make: as many as an object may have. Small ones take the most memory."""


def json_patch(original: JsonValue, operations: JsonValue) -> JsonValue:
    """The value after all operations; none of them counts when one fails. No error repeats a value that is there.
    Raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"the patch has {len(operations)} operations, more than {MAX_OPERATIONS}")
    patched, copied = original, _Copied(0, 0)
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation of a JSON patch is an object")
        if operation.get("op") == "copy":
            copied = _with_copy(copied, patched, operation)
        patched = _after(patched, operation, in_place=patched is not original)
    return patched


def _after(value: JsonValue, operation: Json, *, in_place: bool) -> JsonValue:
    """The value after one operation. The library's words have what they found in them, but for its words on an
    operation that is none. Raises PatchError."""
    try:
        return jsonpatch.JsonPatch([operation]).apply(value, in_place=in_place)
    except jsonpatch.JsonPatchTestFailed:
        raise PatchError(f"testing value {operation.get('path')} failed: test failed") from None
    except jsonpatch.InvalidJsonPatch as error:
        raise PatchError(str(error)) from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError):
        raise _missing(operation, operation.get("path")) from None


def _missing(operation: Json, path: object) -> PatchError:
    """The error in the words of evanphx/json-patch."""
    return PatchError(f'{operation.get("op")} operation does not apply: doc is missing path: "{path}": missing value')


class _Copied(NamedTuple):
    """Sum of the copies of a patch."""

    size_bytes: int
    values: int


def _with_copy(copied: _Copied, value: JsonValue, operation: Json) -> _Copied:
    """The sum with one more, before it is made. Raises PatchError where it is more than there may be."""
    source = operation.get("from")
    if not isinstance(source, str):
        return copied  # the library has words for it
    try:
        found = jsonpointer.resolve_pointer(value, source)
    except (jsonpointer.JsonPointerException, TypeError, AttributeError):
        raise _missing(operation, source) from None
    values = copied.values + _count(found)
    if values > MAX_COPIED_VALUES:
        raise PatchError(f"the patch copies more than {MAX_COPIED_VALUES} values")
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    size_bytes = copied.size_bytes + len(text.encode(errors="surrogatepass"))
    if size_bytes > MAX_COPIED_BYTES:
        raise PatchError(
            f"Unable to complete the copy, the accumulated size increase of copy is {size_bytes}, "
            f"exceeding the limit {MAX_COPIED_BYTES}"
        )
    return _Copied(size_bytes, values)


def _count(value: JsonValue) -> int:
    """Values in it, itself included; it never looks at many more than there may be."""
    found, waiting = 0, [value]
    while waiting and found <= MAX_COPIED_VALUES:
        item = waiting.pop()
        found += 1
        if isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return found
