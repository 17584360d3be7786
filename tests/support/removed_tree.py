"""A tree to be removed, beside one that must stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.fs.directories import root_directory


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[int]:
    """Where ``tree`` lies, beside ``outside``."""
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "b" / "file").write_text("x")
    (tmp_path / "outside" / "below").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_text("stays")
    with root_directory(str(tmp_path)) as fd:
        yield fd
    assert (tmp_path / "outside" / "file").read_text() == "stays"
    assert (tmp_path / "outside" / "below").is_dir()
