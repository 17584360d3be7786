"""Readers of JSON know all that a decoder raises: bytes that are no UTF-8 and deep nesting are no DecodeError."""

from __future__ import annotations

import ast
from typing import Final

from tests.house import ROOT, trees_with

PACKED: Final = {
    "supervisor/pods/board_views.py",
    "workers/api_server/store/statistics.py",
    "workers/stats/collector.py",
}
"""Readers of MessagePack that this agent has written."""


def test_nobody_expects_msgspecs_error_alone() -> None:
    found = {
        str(file.relative_to(ROOT))
        for file, tree in trees_with("DecodeError", "MsgspecError")
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        if {"msgspec.DecodeError", "msgspec.MsgspecError"} & {ast.unparse(each) for each in _types(node.type)}
    }
    assert found == PACKED, "ipc.host.text.json_types.UNDECODABLE is what a JSON decoder raises"


def _types(caught: ast.expr) -> list[ast.expr]:
    return caught.elts if isinstance(caught, ast.Tuple) else [caught]
