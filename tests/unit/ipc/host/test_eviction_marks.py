"""Marks of evicted pods."""

from __future__ import annotations

from pathlib import Path

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
    found = evicted(tmp_path)
    assert found.keys() == {"large"}
    assert len(found["large"]) == MAX_MARK_BYTES
