"""Directories of our own, and those above them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.host.private_directories import ensure_private, make_private


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


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o2770, 0o2700), (0o500, 0o500)])
def test_one_of_ours_is_closed_to_others(tmp_path: Path, before: int, after: int) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(before)
    (tmp_path / "link").symlink_to(there)
    ensure_private(tmp_path / "link")
    assert mode(there) == after


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
