"""Reads the source: public modules have a docstring, and what is named in backquotes exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.reference.settings import every_setting

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("ipc", "supervisor", "workers")
_DOTTED: Final = re.compile(r"`((?:ipc|supervisor|workers)(?:\.\w+)+)`")


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
    source = (
        "`workers.libpod.client.LibpodClient`, `ipc.link.wire`, `workers.volumes.inside`, `ipc.link.wire.boot.Nobody`"
    )
    assert list(lost_names(source)) == ["workers.volumes.inside", "ipc.link.wire.boot.Nobody"]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_modules_have_a_docstring(package: str) -> None:
    bare = {path for path, source in _modules(package) if is_public(path) and not ast.get_docstring(ast.parse(source))}
    assert bare == set()


def is_public(path: str) -> bool:
    """Whether no part of the path is private; ``__init__`` and ``__main__`` are not."""
    return not any(part.startswith("_") and not part.startswith("__") for part in Path(path).parts)


def _modules(package: str) -> Iterator[tuple[str, str]]:
    """Path and source of each."""
    for path in sorted((ROOT / package).rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text()
