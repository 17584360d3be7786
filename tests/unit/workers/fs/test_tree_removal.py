"""Removing trees that somebody has filled with intent: all of it goes, nothing outside does."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from workers.fs.tree_removal import MAX_TOLD, Stuck, remove_tree


def test_a_tree_goes(parent: int, tmp_path: Path) -> None:
    assert remove_tree(parent, "tree") == ()
    assert not (tmp_path / "tree").exists()
    assert remove_tree(parent, "tree") == ()


@pytest.mark.parametrize("place", ["tree/link", "tree/a/link", "tree/a/b/link"])
@pytest.mark.parametrize("target", ["{0}/outside", "../outside", "../../outside", "../../../outside", ".", ".."])
def test_links_go_and_are_not_followed(parent: int, tmp_path: Path, place: str, target: str) -> None:
    (tmp_path / place).symlink_to(target.format(tmp_path))
    assert remove_tree(parent, "tree") == ()
    assert not (tmp_path / "tree").exists()


def test_what_is_itself_a_link_goes_alone(parent: int, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("outside")
    assert remove_tree(parent, "link") == ()
    assert not (tmp_path / "link").is_symlink()


def test_fifos_sockets_and_names_that_are_no_text_go(parent: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tree" / "fifo")
    (tmp_path / "tree" / os.fsdecode(b"\xff\n")).write_text("x")
    assert remove_tree(parent, "tree") == ()


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500, 0o300])
def test_modes_are_not_in_the_way(parent: int, tmp_path: Path, mode: int) -> None:
    (tmp_path / "tree" / "a" / "b").chmod(mode)
    (tmp_path / "tree" / "a").chmod(mode)
    (tmp_path / "tree").chmod(mode)
    assert remove_tree(parent, "tree") == ()
    assert not (tmp_path / "tree").exists()


def test_many_files_cost_no_memory(parent: int, tmp_path: Path) -> None:
    for number in range(20_000):
        os.close(os.open(f"tree/{number:0200}", os.O_CREAT | os.O_WRONLY, dir_fd=parent))
    tracemalloc.start()
    try:
        assert remove_tree(parent, "tree") == ()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "tree").exists()


def test_another_thing_of_that_name_since_it_was_looked_at_is_not_followed(
    parent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment for a swap: a directory was seen, and is a link when it is opened."""
    real = os.open

    def swap(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a" and flags & os.O_PATH == 0:
            os.rename(tmp_path / "tree" / "a", tmp_path / "tree" / "moved")
            os.symlink(tmp_path / "outside", tmp_path / "tree" / "a")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("workers.fs.directories.os.open", swap)
    stuck = remove_tree(parent, "tree")
    assert stuck == (Stuck("tree/a", "Not a directory", errno.ENOTDIR),)


def test_only_so_much_is_told(parent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * MAX_TOLD):
        (tmp_path / "tree" / f"f{number}").write_text("x")
    real = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path.startswith("f"):
            raise PermissionError(13, "Permission denied", path)
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr("workers.fs.tree_removal.os.unlink", refuse)
    stuck = remove_tree(parent, "tree")
    assert len(stuck) == MAX_TOLD
    assert {one.why for one in stuck} == {"Permission denied"}
    assert (tmp_path / "tree" / "f0").exists()


def test_what_cannot_be_removed_is_told_on_one_line() -> None:
    assert str(Stuck("volumes/a\nb", "is a mount point")) == "'volumes/a\\nb': is a mount point"
