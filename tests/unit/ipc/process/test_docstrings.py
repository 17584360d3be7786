"""Docstrings go, and nothing else of a module."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from ipc.process.docstrings import without_docstrings

SOURCE = """
'the module'
class Told:
    'the class'
    def method(self):
        'the method'
        def inner(): 'inner'; return 'kept 1', inner.__doc__
        return inner()
    async def later(self): 'later'
class Silent:
    x = 'kept 2'
    __doc__ = 'kept 3'
class Unset:
    __doc__ = None
    x = 'kept 4'
def returns(): return 'kept 5'
def default(x='kept 6'): return [f'kept 7 {y}' for y in x[:1]]
text = lambda: 'kept 8'
values = [x for x in ('kept 9',)]
def checked(x):
    'checked'
    assert x, 'kept 10'
"""


def told(code: CodeType) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "module"}
    exec(code, names)
    return names


def test_what_modules_define_has_no_text_and_does_the_same() -> None:
    code = compile(SOURCE, "module.py", "exec")
    names = told(without_docstrings(code))
    run = "Told().method(), Silent.x, Silent.__doc__, Unset.x, returns(), default(), text(), values"
    assert eval(run, names) == (
        ("kept 1", None), "kept 2", "kept 3", "kept 4", "kept 5", ["kept 7 k"], "kept 8", ["kept 9"]
    )  # fmt: skip
    assert eval("__doc__, Told.method.__doc__, Told.later.__doc__, checked.__doc__", names) == (None,) * 4
    if sys.version_info < (3, 13):
        assert eval("Told.__doc__", names) is None
    with pytest.raises(AssertionError, match="kept 10"):
        eval("checked(0)", names)


@pytest.mark.parametrize("module", ["workers.pod_worker", "supervisor.master", "asyncio.base_events", "aiohttp.web"])
def test_only_docstrings_differ_in_a_whole_module(module: str) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    docstrings = {
        node.body[0].value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    code = compile(source, spec.origin, "exec", dont_inherit=True)
    pairs = list(zip(constants(code), constants(without_docstrings(code)), strict=True))
    changed = {old for old, new in pairs if old is not new and old != new}
    assert changed, "there are some"
    # Python takes their indentation away from 3.13 on.
    assert {words(each) for each in changed} <= {words(each) for each in docstrings}


def words(text: object) -> str:
    return " ".join(str(text).split())


def constants(code: CodeType) -> Iterator[object]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from constants(constant)
        else:
            yield constant
