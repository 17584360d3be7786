"""Requested restarts on disk: as they were saved, or none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.state.container_restarts_checkpoint import FILE, load, save

RESTARTS: dict[str, dict[str, int | None]] = {"uid": {"id": 5, "other": None}}


def test_as_they_were_saved(tmp_path: Path) -> None:
    save(tmp_path / FILE, RESTARTS)
    assert load(tmp_path / FILE) == RESTARTS
    assert load(tmp_path / "none") == {}


@pytest.mark.parametrize(("before", "after"), [(b'"id"', b'"ix"'), (b"{", b"[")])
def test_a_damaged_file_costs_what_it_says_and_is_kept_aside(tmp_path: Path, before: bytes, after: bytes) -> None:
    save(tmp_path / FILE, RESTARTS)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes().replace(before, after, 1))
    assert load(tmp_path / FILE) == {}
    assert not (tmp_path / FILE).exists()
