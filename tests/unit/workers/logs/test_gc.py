"""Directories of pods that are gone: which go, and everything that must not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.host.clock import wall
from tests.support.log_directories import LATER_S, NOBODY, OTHER, UID, log_directory, look, made
from workers.logs.gc import TIMESTAMP_SLACK_S, Collected, collect


def test_what_is_left_of_a_pod_goes(logs: Path, pods: Path) -> None:
    gone, stays = log_directory(logs), log_directory(logs, OTHER)
    of_gone, of_other = pods / UID, made(pods / OTHER)
    made(of_gone)
    (of_gone / "main.0.termination-log").write_text("bye")
    assert look(logs, pods, OTHER) == Collected(removed=(str(gone), str(of_gone)), failures=())
    assert [entry for root in (logs, pods) for entry in root.iterdir()] == [stays, of_other]


def test_directories_that_are_not_there_are_no_error(tmp_path: Path) -> None:
    assert look(tmp_path / "logs", tmp_path / "pods") == Collected(removed=(), failures=())


@pytest.mark.parametrize(
    "name", ["notes", "a_b", "Default_web_uid", "default_web_", "_web_uid", "default__uid", "de fault_web_uid"]
)
def test_a_directory_of_another_name_stays(logs: Path, name: str) -> None:
    directory = made(logs / name / "main")
    (directory / "0.log").write_text("x")
    assert look(logs).removed == ()


@pytest.mark.parametrize("file", ["notes.txt", "main/notes.txt", "main/deep/0.log", "Main/0.log", "infra_0.pid.txt"])
def test_a_directory_with_something_else_in_it_stays(logs: Path, file: str) -> None:
    directory = log_directory(logs, UID, "main/0.log", file)
    assert look(logs).removed == ()
    assert (directory / file).exists()
    assert (directory / "main" / "0.log").exists(), "all of it"


def test_links_are_neither_followed_nor_removed(logs: Path, pods: Path, tmp_path: Path) -> None:
    outside = log_directory(made(tmp_path / "outside"))
    (logs / outside.name).symlink_to(outside)
    (pods / UID).symlink_to(outside)
    inside = log_directory(logs, OTHER, "main/0.log")
    (inside / "second").symlink_to(outside / "main")
    assert look(logs, pods).removed == ()
    of_pod = made(pods / OTHER)
    (of_pod / "volume").symlink_to(outside)
    assert look(logs, pods).removed == (str(of_pod),)
    assert sorted(os.listdir(outside / "main")) == ["0.log", "0.start-error", "1.log", "1.log.20260101-000000.gz"]


def test_a_file_of_a_directorys_name_stays(logs: Path, pods: Path) -> None:
    (logs / f"default_web_{UID}").write_text("x")
    (pods / UID).write_text("x")
    assert look(logs, pods) == Collected(removed=(), failures=())


def test_what_was_made_since_the_list_was_made_stays(logs: Path, pods: Path) -> None:
    listed_at = wall()
    log_directory(logs)
    made(pods / UID / "containers")
    assert look(logs, pods, listed_at=listed_at).removed == ()
    assert len(look(logs, pods).removed) == 2


def test_a_new_container_makes_an_old_directory_young(logs: Path) -> None:
    directory = log_directory(logs)
    changed_at = directory.stat().st_ctime
    while (directory / "main").stat().st_ctime == changed_at:  # the clock of the file system ticks
        (directory / "main" / "2.log").write_text("x")
        (directory / "main" / "2.log").unlink()
    assert look(logs, listed_at=changed_at + TIMESTAMP_SLACK_S).removed == ()


def test_a_pod_that_comes_at_the_last_moment_stays(logs: Path) -> None:
    directory = log_directory(logs)
    answers = iter([False, True])
    assert collect(str(logs), (), lambda uid: next(answers), wall() + LATER_S, NOBODY).removed == ()
    assert directory.is_dir()


def test_what_is_left_in_memory_goes_too(logs: Path, pods: Path, tmp_path: Path) -> None:
    memory = made(tmp_path / "memory")
    gone, stays = made(memory / UID / "volumes" / "kubernetes.io~secret"), made(memory / OTHER / "volumes")
    found = collect(str(logs), (str(pods), str(memory)), (OTHER,).__contains__, wall() + LATER_S, NOBODY)
    assert found == Collected(removed=(str(memory / UID),), failures=())
    assert (gone.exists(), stays.exists()) == (False, True)


# --- asked by the master -----------------------------------------------------------------------------------------
