"""When a look at the manifests is in doubt, row by row; and that a restart remembers it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from supervisor.sources.source_place import Believed, Kind, Place, PlaceRecord, mismatch, place_at

PATH: Final = Path("/srv/manifests")
DIRECTORY: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=1, inode=2, file_system=7)
REMOUNTED: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=9, inode=2, file_system=7)
MOUNT_POINT: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=3, inode=4, file_system=8)
SAME_NUMBER: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=3, inode=2, file_system=8)
WITHOUT_IDS: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=1, inode=2)
OTHER_WITHOUT_IDS: Final = Place(Kind.DIRECTORY, "/srv/manifests", device=3, inode=2)
RELEASE: Final = Place(Kind.DIRECTORY, "/srv/releases/2", device=1, inode=5, file_system=7)
FILE: Final = Place(Kind.FILE)
FIFO: Final = Place(Kind.OTHER)
ANOTHER: Final = "is another directory than before, without b.yaml"


A: Final = frozenset({"a.yaml"})
NONE: Final[frozenset[str]] = frozenset()
ROWS: Final[dict[str, tuple[Place, Place, str, str]]] = {
    "emptied by its owner": (DIRECTORY, DIRECTORY, "", ""),
    "one is removed": (DIRECTORY, DIRECTORY, "a", ""),
    "another number of the same device": (DIRECTORY, REMOUNTED, "a", ""),
    "unmounted": (DIRECTORY, MOUNT_POINT, "", "is another directory than before, without a.yaml, b.yaml"),
    "replaced by a part": (DIRECTORY, MOUNT_POINT, "a", ANOTHER),
    "replaced by others": (DIRECTORY, MOUNT_POINT, "c d", "is another directory than before, without a.yaml"),
    "a copy": (DIRECTORY, MOUNT_POINT, "a b", ""),
    "a copy and more": (DIRECTORY, MOUNT_POINT, "a b c", ""),
    "the inode of another file system": (DIRECTORY, SAME_NUMBER, "a", ANOTHER),
    "no id, emptied": (WITHOUT_IDS, WITHOUT_IDS, "", ""),
    "no id, another device": (WITHOUT_IDS, OTHER_WITHOUT_IDS, "a", ANOTHER),
    "a link is switched": (DIRECTORY, RELEASE, "c", ""),
    "a link is switched to nothing": (DIRECTORY, RELEASE, "", "is another directory than before"),
    "a file instead": (DIRECTORY, FILE, "c", "is a file now and was a directory, without a.yaml"),
    "a FIFO instead": (DIRECTORY, FIFO, "c", "is neither a file nor a directory now and was a directory"),
    "an editor replaces the file": (FILE, FILE, "a b", ""),
    "a directory instead": (FILE, DIRECTORY, "", "is a directory now and was a file, without a.yaml"),
    "a FIFO of the file's name, which is held for itself": (FILE, FIFO, "a b", ""),
}


@pytest.mark.parametrize("row", ROWS)
def test_doubt(row: str) -> None:
    before, now, names, words = ROWS[row]
    believed = Believed(str(PATH), before, frozenset({"a.yaml", "b.yaml"}))
    found = mismatch(believed, PATH, now, frozenset(f"{name}.yaml" for name in names.split()))
    assert bool(found) is bool(words)
    assert found.startswith(words)


def test_nothing_is_doubted_that_nobody_has_seen() -> None:
    assert mismatch(None, PATH, MOUNT_POINT, frozenset()) == ""


def test_another_path_in_the_configuration_is_a_wish() -> None:
    believed = Believed("/srv/elsewhere", DIRECTORY, frozenset({"a.yaml"}))
    assert mismatch(believed, PATH, MOUNT_POINT, frozenset()) == ""


def test_few_of_many_are_named() -> None:
    believed = Believed(str(PATH), DIRECTORY, frozenset(f"{number}.yaml" for number in range(8)))
    assert "without 0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml and 3 more: " in mismatch(believed, PATH, FILE, ())


def test_what_is_there() -> None:
    assert place_at(Path("/dev/null")).kind is Kind.OTHER
    assert place_at(Path(__file__)) == Place(Kind.FILE)
    found = place_at(Path(__file__).parent)
    assert (found.kind, found.inode) == (Kind.DIRECTORY, Path(__file__).parent.stat().st_ino)


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    directory = tmp_path / "manifests"
    directory.mkdir()
    return directory


def _swap(directory: Path) -> None:
    directory.rename(directory.with_name("away"))
    directory.mkdir()


def test_a_restart_remembers_what_was_believed(manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "state" / "manifest_source"
    assert PlaceRecord(manifests, file).judge(place_at(manifests), A) == ""
    _swap(manifests)
    keeper = PlaceRecord(manifests, file)
    assert "without a.yaml" in keeper.judge(place_at(manifests), NONE)
    assert "without a.yaml" in PlaceRecord(manifests, file).judge(place_at(manifests), NONE)
    assert keeper.accept()
    assert keeper.judge(place_at(manifests), NONE) == ""
    assert PlaceRecord(manifests, file).judge(place_at(manifests), NONE) == ""


def test_without_a_doubt_there_is_nothing_to_accept(manifests: Path, tmp_path: Path) -> None:
    keeper = PlaceRecord(manifests, tmp_path / "manifest_source")
    keeper.judge(place_at(manifests), A)
    assert not keeper.accept()
    _swap(manifests)
    assert keeper.judge(place_at(manifests), NONE)


def test_what_comes_back_is_believed(manifests: Path, tmp_path: Path) -> None:
    keeper = PlaceRecord(manifests, tmp_path / "manifest_source")
    keeper.judge(place_at(manifests), A)
    _swap(manifests)
    assert keeper.judge(place_at(manifests), NONE)
    manifests.rmdir()
    manifests.with_name("away").rename(manifests)
    assert (keeper.judge(place_at(manifests), NONE), keeper.mismatch) == ("", "")


def test_a_record_that_went_away_is_written_again(manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "state" / "manifest_source"
    keeper = PlaceRecord(manifests, file)
    keeper.judge(place_at(manifests), A)
    shutil.rmtree(file.parent)
    keeper.judge(place_at(manifests), A)
    assert file.is_file()


def test_a_damaged_record_is_moved_aside(manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "manifest_source"
    file.write_bytes(b"\xff")
    assert PlaceRecord(manifests, file).judge(place_at(manifests), A) == ""
    assert (tmp_path / "manifest_source.refused").is_file()


def test_names_of_any_bytes(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    directory.mkdir()
    keeper = PlaceRecord(directory, tmp_path / "manifest_source")
    assert keeper.judge(place_at(directory), A) == ""
    _swap(directory)
    assert PlaceRecord(directory, tmp_path / "manifest_source").judge(place_at(directory), NONE)


def test_a_file_above_the_maximum_is_not_missing(manifests: Path, tmp_path: Path) -> None:
    keeper = PlaceRecord(manifests, tmp_path / "manifest_source")
    keeper.judge(place_at(manifests), A)
    _swap(manifests)
    assert keeper.judge(place_at(manifests), NONE, A) == ""
