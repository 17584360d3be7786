"""Reads the source: a docstring begins with the name of its subject or with a verb, never with a pronoun or with "Of".

A string that is a statement is a docstring: of a module, class or function, or of the attribute above it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("ipc", "supervisor", "workers")
PRONOUNS: Final = (
    *("What", "Whatever", "Who", "Whoever", "Whom", "Whose", "It", "Its"),
    *("They", "Them", "Their", "That", "Those", "These"),
    "Of",
)
_PRONOUN: Final = re.compile(rf"\s*(?:{'|'.join(PRONOUNS)})\b")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_name_their_subject(package: str) -> None:
    found = {f"{path}:{line}: {text}" for path, tree in _modules(package) for line, text in begun_with_pronoun(tree)}
    assert found == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_public_modules_have_a_docstring(package: str) -> None:
    bare = {path for path, tree in _modules(package) if is_public(path) and not ast.get_docstring(tree)}
    assert bare == set()


@pytest.mark.parametrize(
    "source",
    [
        '"""What is here."""',
        '"""Of each call."""',
        'class Pod:\n    """Those that run."""',
        'class Pod:\n    uid: str\n    """Whose it is."""',
        'MAX_PODS = 3\n"""It is small."""',
        'def pods():\n    """\n    They run.\n    """',
        'async def pods():\n    """That pod\'s."""',
        'class Pool:\n    def __init__(self):\n        self.free = 1\n        """Its slots."""',
    ],
)
def test_pronoun_is_found_in_every_kind_of_docstring(source: str) -> None:
    assert len(list(begun_with_pronoun(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Whether it runs. It may."""',
        '"""Iterate over those that run."""',
        '"""Thatched."""',
        'def pods():\n    return "What runs"',
    ],
)
def test_other_beginnings_and_plain_strings_are_free(source: str) -> None:
    assert list(begun_with_pronoun(ast.parse(source))) == []


def begun_with_pronoun(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and first line of each docstring that begins with one of `PRONOUNS`."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if _PRONOUN.match(text):
                yield node.lineno, text.strip().splitlines()[0]


def is_public(path: str) -> bool:
    """Whether no part of the path is private; ``__init__`` and ``__main__`` are not."""
    return not any(part.startswith("_") and not part.startswith("__") for part in Path(path).parts)


def _modules(package: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())
