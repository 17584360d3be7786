"""Reads the source: a docstring or comment begins with the name of its subject or with a verb, not with a pronoun or
with "Of", and what it names in backquotes exists.

A string that is a statement is a docstring: of a module, class or function, or of the attribute above it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.reference.settings import every_setting

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("ipc", "supervisor", "workers")
PRONOUNS: Final = (
    *("What", "Whatever", "Which", "Who", "Whoever", "Whom", "Whose", "It", "Its"),
    *("They", "Them", "Their", "That", "Those", "These"),
    "Of",
    r"The same(?=[.,]| (?:after|again|as|by|for|from|in|of|once|to|while|with|without)\b)",
)
_DOTTED: Final = re.compile(r"`((?:ipc|supervisor|workers)(?:\.\w+)+)`")
_PRONOUN: Final = re.compile(rf"#?\s*(?:{'|'.join(PRONOUNS)})\b")
_PRONOUN_IN_COMMENT: Final = re.compile(rf"#\s*(?:{'|'.join(PRONOUNS)})\b")


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_docstrings_and_comments_name_their_subject(package: str) -> None:
    found = {
        f"{path}:{line}: {text}"
        for path, source in _modules(package)
        for line, text in (*begun_with_pronoun(ast.parse(source)), *comments_begun_with_pronoun(source))
    }
    assert found == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_named_in_backquotes_exists(package: str) -> None:
    settings = {setting.name for setting in every_setting()}
    found = {
        f"{path}: {name}" for path, source in _modules(package) for name in lost_names(source) if name not in settings
    }
    assert found == set()


def lost_names(source: str) -> Iterator[str]:
    """Dotted names in backquotes of no module, class, function or constant of ours."""
    for name in _DOTTED.findall(source):
        parts = name.split(".")
        lengths = range(len(parts), 0, -1)
        files = ((n, file) for n in lengths for file in (_module_file(parts[:n]),) if file is not None)
        length, file = next(files, (0, Path("/dev/null")))
        text = file.read_text()
        if not length or any(not re.search(rf"\b{part}\b", text) for part in parts[length:]):
            yield name


def _module_file(parts: list[str]) -> Path | None:
    path = ROOT.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def test_a_name_that_is_lost_is_found() -> None:
    source = "`workers.libpod.client.LibpodClient`, `ipc.wire`, `workers.volumes.inside`, `ipc.wire.boot.Nobody`"
    assert list(lost_names(source)) == ["workers.volumes.inside", "ipc.wire.boot.Nobody"]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_modules_have_a_docstring(package: str) -> None:
    bare = {path for path, source in _modules(package) if is_public(path) and not ast.get_docstring(ast.parse(source))}
    assert bare == set()


@pytest.mark.parametrize(
    "source",
    [
        '"""What is here."""',
        '"""Of each call."""',
        '"""The same by key."""',
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


@pytest.mark.parametrize("source", ["# It runs.", "pods = 3  # Of each node.", "a = 1  # one\n# What\n# it says"])
def test_pronoun_is_found_in_a_comment(source: str) -> None:
    assert len(list(comments_begun_with_pronoun(source))) == 1


def test_later_lines_of_a_comment_are_free() -> None:
    assert list(comments_begun_with_pronoun("# Pods that run.\n# It may be none.\nwhat = '# It'")) == []


def begun_with_pronoun(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and first line of each docstring that begins with one of `PRONOUNS`."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if _PRONOUN.match(text):
                yield node.lineno, text.strip().splitlines()[0]


def comments_begun_with_pronoun(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment that begins with one of `PRONOUNS`. A line below another continues it."""
    if not _PRONOUN_IN_COMMENT.search(source):
        return  # most modules: the tokens need not be read
    goes_on_at = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, stands_alone = token.start[0], not token.line[: token.start[1]].strip()
        if _PRONOUN.match(token.string) and not (stands_alone and line == goes_on_at):
            yield line, token.string
        goes_on_at = line + 1 if stands_alone else 0


def is_public(path: str) -> bool:
    """Whether no part of the path is private; ``__init__`` and ``__main__`` are not."""
    return not any(part.startswith("_") and not part.startswith("__") for part in Path(path).parts)


def _modules(package: str) -> Iterator[tuple[str, str]]:
    """Path and source of each."""
    for path in sorted((ROOT / package).rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text()
