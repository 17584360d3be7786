"""Marks of evicted pods."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.host.eviction_marks import MARK, MAX_MARK_BYTES, evicted, mark_evicted


def test_what_is_marked_is_found(tmp_path: Path) -> None:
    for uid in ("a", "b"):
        (tmp_path / uid).mkdir()
    mark_evicted(tmp_path / "a", "too large")
    assert evicted(tmp_path) == {"a": "too large"}
    mark_evicted(tmp_path / "a", "much too large")
    assert evicted(tmp_path) == {"a": "much too large"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == [MARK]


def test_no_directory_no_marks(tmp_path: Path) -> None:
    assert evicted(tmp_path / "missing") == {}


def test_what_is_no_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd" / MARK).mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / MARK).touch()
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / MARK).write_bytes(b"\xff" * (2 * MAX_MARK_BYTES))
    assert not evicted(tmp_path)
    assert (tmp_path / "large" / f"{MARK}.refused").exists()


def test_a_directory_of_pods_that_cannot_be_read_has_no_marks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "pods").touch()
    assert not evicted(tmp_path / "pods")
    assert "Not a directory" in caplog.text
    os.mkdir(tmp_path / "a")
    os.mkfifo(tmp_path / "a" / MARK)
    assert not evicted(tmp_path)
