"""No file of the project has the markers that a merge leaves where two versions differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DIRECTORIES: Final = (".ci", "configs", "docs", "ipc", "supervisor", "tests", "workers")
GENERATED: Final = frozenset({"__pycache__", "node_modules"})
MAX_BYTES: Final = 8 << 20
_MARKER: Final = re.compile(rb"^(?:<{7} .*|={7}|>{7} .*|\|{7} .*)\r?$", re.MULTILINE)


def files() -> Iterator[Path]:
    """Files of the checkout, without what tools write beside them."""
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for directory in DIRECTORIES:
        for path in (ROOT / directory).rglob("*"):
            if path.is_file() and not GENERATED & set(path.parts):
                yield path


def marked(content: bytes) -> list[int]:
    """Numbers of the lines that are markers."""
    return [content.count(b"\n", 0, found.start()) + 1 for found in _MARKER.finditer(content)]


def test_no_file_is_half_merged() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in files()
        if path.stat().st_size <= MAX_BYTES
        for line in marked(path.read_bytes())
    }
    assert not found


def test_markers_are_recognised() -> None:
    text = b"a\n" + b"<" * 7 + b" HEAD\none\n" + b"=" * 7 + b"\ntwo\n" + b">" * 7 + b" other\n"
    assert marked(text) == [2, 4, 6]
    assert marked(b"Title\n========\n<<<<<<<<\n") == []
