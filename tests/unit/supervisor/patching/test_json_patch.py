"""Bounds of JSON patches, and what their errors may say."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from ipc.k8s.patching.values import PatchError
from supervisor.patching.json_patch import MAX_COPIED_BYTES, MAX_OPERATIONS, json_patch
from supervisor.patching.patches import JSON_PATCH, MAX_DEPTH, patched

OBJECT: dict[str, Any] = {"a": {"text": "x" * 1024}, "list": [1, 2]}
PLANTED = "planted-value"


def refused(*operations: Any, original: Any = OBJECT) -> str:
    with pytest.raises(PatchError) as error:
        json_patch(original, list(operations))
    return str(error.value)


def copy(source: str, path: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": path}


DOUBLING: dict[str, list[dict[str, str]]] = {
    "an object into itself": [copy("/a", f"/a/{index}") for index in range(60)],
    "the whole document": [copy("", f"/{index}") for index in range(60)],
    "into a list": [copy("/list", "/list/-") for index in range(60)],
    "one text, many times": [copy("/a/text", f"/a/{index}") for index in range(MAX_OPERATIONS)],
}


@pytest.mark.parametrize("operations", DOUBLING.values(), ids=DOUBLING)
def test_copies_are_bounded_before_they_are_made(operations: list[dict[str, str]]) -> None:
    """In memory, too: the last copy may be as large as all before it."""
    tracemalloc.start()
    try:
        words = refused(*operations)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    large = words.startswith("Unable to complete the copy, the accumulated size increase of copy is ")
    assert words.endswith(f"exceeding the limit {MAX_COPIED_BYTES}" if large else "copies more than 100000 values")
    assert peak_bytes < 10 * MAX_COPIED_BYTES


def test_one_large_text_counts_with_its_length() -> None:
    large = {"text": "x" * (1 << 20)}
    assert len(json_patch(large, [copy("/text", "/a"), copy("/text", "/b")])) == 3
    assert "Unable to complete" in refused(*(copy("/text", f"/{name}") for name in "abc"), original=large)


def test_the_bounds_are_for_the_whole_patch() -> None:
    assert json_patch(OBJECT, [copy("/list", "/a/list")])["a"]["list"] == [1, 2]
    assert "more than 10000" in refused(*[{"op": "test", "path": "/list", "value": [1, 2]}] * (MAX_OPERATIONS + 1))
    nested = b'[{"op": "add", "path": "/a", "value": %s}]' % (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(PatchError, match="nested deeper"):
        patched(OBJECT, nested, JSON_PATCH, "Pod")


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "test", "path": "/data/password", "value": "x"}, "testing value /data/password failed: test failed"),
        ({"op": "test", "path": "/data/nope", "value": "x"}, "testing value /data/nope failed: test failed"),
        (
            {"op": "remove", "path": "/data/nope"},
            'remove operation does not apply: doc is missing path: "/data/nope": missing value',
        ),
        (
            {"op": "replace", "path": "/data/password/x", "value": 1},
            'replace operation does not apply: doc is missing path: "/data/password/x": missing value',
        ),
        (copy("/data/nope", "/x"), 'copy operation does not apply: doc is missing path: "/data/nope": missing value'),
        (copy("/list/x", "/x"), 'copy operation does not apply: doc is missing path: "/list/x": missing value'),
        (
            {"op": "move", "from": "/data/nope", "path": "/x"},
            'move operation does not apply: doc is missing path: "/x": missing value',
        ),
        ({"op": "add", "path": "/list/9", "value": 1}, 'add operation does not apply: doc is missing path: "/list/9"'),
        ({"op": "\ud800", "path": "/x"}, "Unknown operation "),
        ({"op": "add", "path": "/x"}, "The operation does not contain a 'value' member"),
        ({"op": "add", "path": 1, "value": 1}, ""),
        ({"op": "copy", "from": 1, "path": "/x"}, ""),
        ({"op": ["copy"], "from": "/data", "path": "/x"}, ""),
        ("add", "an operation of a JSON patch is an object"),
        (None, "an operation of a JSON patch is an object"),
    ],
)
def test_no_error_repeats_a_value_of_the_object(operation: Any, words: str) -> None:
    found = refused(operation, original={"data": {"password": PLANTED}, "list": [PLANTED]})
    assert found.startswith(words)
    assert PLANTED not in found
