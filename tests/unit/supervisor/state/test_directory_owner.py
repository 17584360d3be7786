"""Two instances do not share a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.agent import claim_directories
from supervisor.config.settings import Settings
from supervisor.state.directory_owner import OWNER_FILE, DirectoryTaken, claim


def test_the_first_keeps_it_over_restarts_and_others_are_told_whose_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "made" / "pod-logs"
    claim(directory, "one")
    claim(directory, "one")
    with pytest.raises(DirectoryTaken, match=rf"{directory} belongs to the instance 'one'.*{OWNER_FILE}"):
        claim(directory, "two")
    (directory / OWNER_FILE).unlink()
    claim(directory, "two")
    assert (directory / OWNER_FILE).stat().st_mode & 0o777 == 0o600


def test_of_two_at_a_time_the_first_to_write_has_it(tmp_path: Path) -> None:
    (tmp_path / OWNER_FILE).write_text("one\ntwo\n")
    claim(tmp_path, "one")
    with pytest.raises(DirectoryTaken):
        claim(tmp_path, "two")


def test_a_mark_that_was_cut_off_by_a_full_disk_is_written_again(tmp_path: Path) -> None:
    (tmp_path / OWNER_FILE).touch()
    claim(tmp_path, "one")
    assert (tmp_path / OWNER_FILE).read_text() == "one\n"


def test_a_mark_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / OWNER_FILE).symlink_to(tmp_path / "elsewhere")
    claim(tmp_path, "one")
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / f"{OWNER_FILE}.refused").is_symlink()


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"\0" * 4096, b"\n", b"One Two\n", b"a" * 64 + b"\n"])
def test_a_damaged_mark_is_nobodys(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / OWNER_FILE).write_bytes(content)
    claim(tmp_path, "one")
    assert (tmp_path / OWNER_FILE).read_text() == "one\n"
    assert (tmp_path / f"{OWNER_FILE}.refused").read_bytes() == content
    assert "nobody's mark" in caplog.text


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.touch(mode=0)])
def test_what_is_no_file_that_can_be_read_is_nobodys_mark(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / OWNER_FILE)
    claim(tmp_path, "one")
    assert (tmp_path / OWNER_FILE).read_text() == "one\n"


def settings(tmp_path: Path, instance: str, logs: Path) -> Settings:
    return Settings(
        instance_name=instance, state_dir=tmp_path / instance, memory_dir=tmp_path / instance, pod_logs_dir=logs
    )


def test_an_agent_claims_logs_and_state(tmp_path: Path) -> None:
    claim_directories(settings(tmp_path, "one", tmp_path / "logs"))
    with pytest.raises(DirectoryTaken, match="logs"):
        claim_directories(settings(tmp_path, "two", tmp_path / "logs"))


def test_a_directory_that_cannot_be_marked_keeps_nobody_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    claim_directories(settings(tmp_path, "one", tmp_path / "file" / "logs"))
    assert "cannot mark" in caplog.text
