"""Content of volumes whose policy is Delete: what goes, and what never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.userns.unshare import Unshare
from workers.volumemanager.deletion import delete

NOBODY = Unshare(podman="/nonexistent/podman")


def removed(path: Path | str, root: Path) -> str:
    return delete(str(path), NOBODY, str(root))


def test_the_directory_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("x")
    assert removed(tmp_path / "a" / "b", tmp_path) == ""
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert removed(tmp_path / "a" / "b", tmp_path) == ""


def test_no_link_on_the_way_is_followed(tmp_path: Path) -> None:
    (tmp_path / "outside" / "data").mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    assert removed(root / "link" / "data", root) != ""
    assert removed(root / "link", root) == ""
    assert (tmp_path / "outside" / "data").is_dir()


@pytest.mark.parametrize("path", ["", "..", "a/../..", "/etc"])
def test_nothing_outside_and_not_the_root_itself(tmp_path: Path, path: str) -> None:
    words = removed(path if path.startswith("/") else f"{tmp_path}/{path}", tmp_path)
    assert words.startswith(f"host_path deleter only supports {tmp_path}/.+ but received provided ")
