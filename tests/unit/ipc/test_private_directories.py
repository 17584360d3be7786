"""Directories of our own, and those above them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.private_directories import make_private


@pytest.fixture
def _open_umask() -> Iterator[None]:
    mask = os.umask(0o022)
    yield
    os.umask(mask)


@pytest.mark.usefixtures("_open_umask")
def test_what_is_made_on_the_way_is_private_too(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "b" / "c")
    assert [mode(tmp_path / path) for path in ("a", "a/b", "a/b/c")] == [0o700, 0o700, 0o700]


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    make_private(there / "below")
    make_private(there)
    assert (mode(there), mode(there / "below")) == (0o755, 0o700)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
