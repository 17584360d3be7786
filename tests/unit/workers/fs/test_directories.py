"""Directories by descriptor: links on the way, other users' directories, modes, and what a file system is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.open_files import open_files, open_files_before
from workers.fs.directories import directory_below, is_absent, is_name, made_below, private_root, root_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_missing_is_made_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        with private_root(str(tmp_path / "a" / "b")) as root, made_below(root, "c", "d", mode=0o755):
            pass
    finally:
        os.umask(before)
    assert [mode(tmp_path / path) for path in ("a", "a/b")] == [0o700, 0o700]
    assert mode(tmp_path / "a/b/c/d") == 0o755


def test_a_mode_is_put_right_and_a_setgid_bit_stays(tmp_path: Path) -> None:
    with private_root(str(tmp_path)) as root:
        for before, after in ((0o700, 0o755), (0o2755, 0o2755), (0o777, 0o755)):
            (tmp_path / "a").mkdir(exist_ok=True)
            (tmp_path / "a").chmod(before)
            with made_below(root, "a", mode=0o755):
                assert mode(tmp_path / "a") == after


def test_a_root_that_others_may_enter_is_closed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir(mode=0o755)
    with private_root(str(tmp_path / "root")):
        assert mode(tmp_path / "root") == 0o700


def test_a_root_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with private_root(str(tmp_path / "link")) as root, made_below(root, "a"):
        assert (tmp_path / "real" / "a").is_dir()


@pytest.mark.parametrize("step", [0, 1, 2])
def test_no_link_below_is_followed(tmp_path: Path, step: int) -> None:
    names = ("a", "b", "c")
    (tmp_path / "outside").mkdir()
    link = tmp_path.joinpath("root", *names[: step + 1])
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside")
    before = open_files_before()
    with root_directory(str(tmp_path / "root")) as root:
        for opened in (directory_below, made_below):
            with pytest.raises(NotADirectoryError), opened(root, *names):
                pass
    assert list((tmp_path / "outside").iterdir()) == []
    assert open_files() == before


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    us = os.geteuid()
    monkeypatch.setattr("workers.fs.directories.os.geteuid", lambda: us + 1)
    with pytest.raises(PermissionError, match="belongs to another user"), private_root(str(tmp_path)):
        pass
    with (
        root_directory(str(tmp_path)) as root,
        pytest.raises(PermissionError, match="belongs to another user"),
        made_below(root, "a"),
    ):
        pass


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "/", "a\0", "n" * 256, "ä" * 128])
def test_what_is_no_name_is_no_step(tmp_path: Path, text: str) -> None:
    assert not is_name(text)
    with root_directory(str(tmp_path)) as root:
        for opened in (directory_below, made_below):
            with pytest.raises(OSError, match="is not a file name"), opened(root, text):
                pass


@pytest.mark.parametrize("text", ["a", "..data", "...", " ", "n" * 255, "a\nb"])
def test_names(text: str) -> None:
    assert is_name(text)


def test_only_what_is_certainly_not_there_is_absent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert is_absent(str(tmp_path), "uid", "volumes")
    assert not is_absent(str(tmp_path), "file")
    assert not is_absent(str(tmp_path), "dangling")
    assert not is_absent(str(tmp_path), "n" * 300)
    assert not is_absent(str(tmp_path), "file", "below")
