"""Records of images: whose an image is that was pulled, over deaths of whoever pulled it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.host.clock import Instant
from workers.images.garbage import ImageRecord
from workers.images.image_records import ImageRecords
from workers.kubecontainer.image_service import ListedImage

NAME, OTHER = "quay.io/a/b:1", "quay.io/a/c:1"
NOW = 1_800_000_000.0


class Stopped:
    """A clock that stands still."""

    def now(self) -> Instant:
        return Instant(mono=1.0, wall=NOW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "images.json"


def opened(file: Path | str) -> ImageRecords:
    """As a process reads it that has just begun."""
    return ImageRecords(str(file), Stopped())


def test_what_was_pulled_is_known_to_the_next_process(file: Path) -> None:
    records = opened(file)
    records.pull_begins(NAME, "")
    records.pull_ended(NAME, "id")
    assert opened(file).of("id") == ImageRecord(first_detected=NOW, pulled=(NAME,))
    records.removed("id")
    assert opened(file).of("id") == ImageRecord()


def test_an_image_that_was_there_before_the_pull_stays_its_owners(file: Path) -> None:
    records = opened(file)
    records.pull_begins(NAME, "id")
    records.pull_ended(NAME, "id")
    assert records.of("id").pulled == ()
    records.pull_begins(NAME, "id")
    records.pull_ended(NAME, "newer")
    assert (records.of("id").pulled, records.of("newer").pulled) == ((), (NAME,))


def test_a_second_pull_of_ours_stays_ours_under_all_its_names(file: Path) -> None:
    records = opened(file)
    for name, present in ((NAME, ""), (NAME, "id"), (OTHER, "")):
        records.pull_begins(name, present)
        records.pull_ended(name, "id")
    assert records.of("id").pulled == (NAME, OTHER)


def test_a_pull_that_has_failed_or_whose_begin_is_not_known_makes_nothing_ours(file: Path) -> None:
    records = opened(file)
    records.pull_begins(NAME, "")
    records.pull_ended(NAME)
    records.pull_ended(NAME, "id")
    assert opened(file).all == {}


def test_what_a_killed_process_has_pulled_is_found(file: Path) -> None:
    opened(file).pull_begins(NAME, "")
    opened(file).pull_begins(OTHER, "theirs")
    records = opened(file)
    images = [ListedImage(id="id", names=(NAME,)), ListedImage(id="theirs", names=(OTHER,))]
    records.find_pulled(images, in_flight={NAME, OTHER})
    assert records.all == {}, "their ends are still to come"
    records.find_pulled(images, in_flight=())
    assert {id: record.pulled for id, record in opened(file).all.items()} == {"id": (NAME,)}


def test_a_pull_that_is_begun_again_after_a_death_is_ours_all_the_same(file: Path) -> None:
    opened(file).pull_begins(NAME, "")
    records = opened(file)
    records.pull_begins(NAME, "id")
    records.pull_ended(NAME, "id")
    assert records.of("id").pulled == (NAME,)


def test_uses_are_noted_and_images_that_are_gone_forgotten(file: Path) -> None:
    records = opened(file)
    records.detected(["one", "two"], {"two"}, NOW - 5)
    assert opened(file).all == {
        "one": ImageRecord(first_detected=NOW - 5),
        "two": ImageRecord(first_detected=NOW - 5, last_used=NOW - 5),
    }
    records.pull_begins(NAME, "")
    records.pull_ended(NAME, "pulled since the list was made")
    records.detected(["two"], (), NOW - 1)
    assert set(opened(file).all) == {"two", "pulled since the list was made"}
    assert opened(file).of("two").last_used == NOW - 5


@pytest.mark.parametrize("text", ["", "[]", "{}}", '{"images": 1}', "[" * 100_000, '{"version": 2}'])
def test_a_file_that_cannot_be_used_is_moved_aside_and_begun_anew(file: Path, text: str) -> None:
    file.write_text(text)
    records = opened(file)
    assert (records.all, records.began_at) == ({}, NOW)
    assert file.with_name("images.json.refused").read_text() == text
    records.detected(["one"], (), NOW)
    assert set(opened(file).all) == {"one"}


@pytest.mark.parametrize("field", ["images", "pulled", "first_detected", "last_used"])
def test_a_field_whose_name_was_damaged_is_not_passed_over(file: Path, field: str) -> None:
    records = opened(file)
    records.detected(["one"], ["one"], NOW)
    records.pull_begins(NAME, "")
    records.pull_ended(NAME, "one")
    content = file.read_bytes()
    middle = content.index(f'"{field}"'.encode()) + 3
    file.write_bytes(content[:middle] + b"\xff" + content[middle + 1 :])
    assert opened(file).all == {}
    assert file.with_name("images.json.refused").exists()


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    records = opened(tmp_path / "missing" / "images.json")
    records.pull_begins(NAME, "")
    records.pull_ended(NAME, "id")
    assert records.of("id").pulled == (NAME,)
    assert opened("").all == {}
