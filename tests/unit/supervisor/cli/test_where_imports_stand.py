"""Imports that each use of a command needs stand at its module's top; others, where they are used, before all else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

CLI: Final = Path(__file__).resolve().parents[4] / "supervisor" / "cli"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


def hidden_imports(source: str) -> list[int]:
    """Lines of imports in functions that stand elsewhere than right behind the docstring."""
    return [line for node in ast.walk(ast.parse(source)) if isinstance(node, Function) for line in _hidden(node)]


def _hidden(function: Function) -> Iterator[int]:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    first = next((index for index, statement in enumerate(body) if not isinstance(statement, Import)), len(body))
    for statement in body[first:]:
        yield from (node.lineno for node in ast.walk(statement) if isinstance(node, Import))


def test_imports_in_functions_come_first() -> None:
    files = sorted(CLI.rglob("*.py"))
    assert files
    assert {str(file): lines for file in files if (lines := hidden_imports(file.read_text()))} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import a\ndef f():\n    'text'\n    import b\n    from c import d\n    return b, d", []),
        ("def f():\n    x = 1\n    import b\n    return b, x", [3]),
        ("async def f():\n    if x:\n        import b", [3]),
    ],
)
def test_hidden_imports_are_found(source: str, lines: list[int]) -> None:
    assert hidden_imports(source) == lines
