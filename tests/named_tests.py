"""Tests by name, as documents claim them: ``path::name`` or ``path::Class::name``, without parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path


def missing(references: Iterable[str], root: Path) -> list[str]:
    """References that name no test; files are looked up below ``root``."""
    named = list(references)
    known = {path: _tests_of(root / path) for path in {reference.partition("::")[0] for reference in named}}
    return [reference for reference in named if reference.partition("::")[2] not in known[reference.partition("::")[0]]]


def _tests_of(file: Path) -> frozenset[str]:
    """None of a file that is not there."""
    return frozenset(_test_names(ast.parse(file.read_text()))) if file.is_file() else frozenset()


def _test_names(parent: ast.Module | ast.ClassDef) -> Iterator[str]:
    """``name``, or ``Class::name`` as pytest writes it."""
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from map(partial("{}::{}".format, node.name), _test_names(node))
