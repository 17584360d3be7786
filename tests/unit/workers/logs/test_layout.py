"""Log directories, and the mark of a failed start in them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState
from tests.support.pods import UID, observed, pod, seen
from workers.logs import layout, start_error


def test_paths_are_the_kubelets() -> None:
    directory = layout.pod_directory("/var/log/pods", "default", "web", UID)
    assert layout.log_file(directory, "main", 3) == Path(f"/var/log/pods/default_web_{UID}/main/3.log")


def test_the_newest_two_attempts_keep_their_files(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    names = ["0.log", "1.log", "1.log.20260101-000000", "2.log", "2.start-error", "3.log", "notes.txt"]
    for name in names:
        (tmp_path / "main" / name).touch()
    layout.prune(tmp_path, "main", newest_attempt=3, kept=2)
    assert {entry.name for entry in (tmp_path / "main").iterdir()} == {"2.log", "2.start-error", "3.log", "notes.txt"}


def test_an_attempt_whose_container_is_there_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    for name in ("0.log", "0.start-error", "1.log", "2.log"):
        (tmp_path / "main" / name).touch()
    layout.prune(tmp_path, "main", newest_attempt=3, kept=2, there={0})
    assert {entry.name for entry in (tmp_path / "main").iterdir()} == {"0.log", "0.start-error", "2.log"}


@pytest.mark.parametrize(("max_dead", "left"), [(0, [3, 4]), (1, [3, 4]), (3, [1, 2, 3, 4]), (-1, [0, 1, 2, 3, 4])])
def test_a_dead_container_that_is_kept_keeps_its_log(tmp_path: Path, max_dead: int, left: list[int]) -> None:
    (tmp_path / "main").mkdir()
    for attempt in range(5):
        (tmp_path / "main" / f"{attempt}.log").touch()
    layout.prune(tmp_path, "main", newest_attempt=4, kept=layout.kept_attempts(max_dead))
    assert sorted(entry.name for entry in (tmp_path / "main").iterdir()) == [f"{attempt}.log" for attempt in left]


def test_attempts_that_never_started_take_no_older_ones_place(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    for name in ("0.log", "1.log"):
        (tmp_path / "main" / name).touch()
    layout.prune(tmp_path, "main", newest_attempt=4, kept=layout.KEPT_ATTEMPTS)
    assert [entry.name for entry in (tmp_path / "main").iterdir()] == ["1.log"]
    assert layout.read_restart_count(tmp_path, "main") == 2


def test_the_count_goes_on_where_the_files_end(tmp_path: Path) -> None:
    assert layout.read_restart_count(tmp_path, "main") == 0
    layout.ensure_directory(layout.log_file(tmp_path, "main", 0))
    assert layout.read_restart_count(tmp_path, "main") == 0
    (tmp_path / "main" / "4.start-error").touch()
    assert layout.read_restart_count(tmp_path, "main") == 5


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    layout.ensure_directory(layout.log_file(tmp_path / "pod", "main", 0))
    layout.remove(tmp_path / "pod")
    layout.remove(tmp_path / "pod")
    layout.remove(tmp_path / ("p" * 256))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_start_is_seen_as_an_exit_at_creation(tmp_path: Path) -> None:
    of = pod("a", "b")
    directory = layout.pod_directory(str(tmp_path), "default", "web", UID)
    start_error.write(layout.log_file(directory, "a", 1), "crun: /nothing: not found")
    a = seen(of, "a", ContainerState.CREATED, 1, created_at=77.0)
    b = seen(of, "b", ContainerState.CREATED, 1, created_at=78.0)
    looked_up = start_error.with_start_errors(observed(of, a, b), str(tmp_path))
    failed = {
        "state": ContainerState.EXITED,
        "exit_code": 128,
        "finished_at": 77.0,
        "error": "crun: /nothing: not found",
    }
    assert looked_up.containers == (msgspec.structs.replace(a, **failed), b)


def test_the_mark_says_nothing_about_a_container_that_runs_after_all(tmp_path: Path) -> None:
    of = pod("a")
    directory = layout.pod_directory(str(tmp_path), "default", "web", UID)
    start_error.write(layout.log_file(directory, "a", 0), "timed out")
    status = observed(of, seen(of, "a", ContainerState.RUNNING))
    assert start_error.with_start_errors(status, str(tmp_path)) == status


def test_a_mark_cut_short_still_counts_and_a_long_one_is_cut(tmp_path: Path) -> None:
    log_file = layout.log_file(tmp_path, "main", 0)
    assert start_error.read(log_file) is None
    start_error.write(log_file, "")
    assert start_error.read(log_file) == "the container could not be started"
    start_error.write(log_file, "\N{SNOWMAN}" * 5000)
    assert 0 < len((start_error.read(log_file) or "").encode()) <= start_error.MAX_MESSAGE_BYTES + 3


@pytest.mark.parametrize(
    ("planted", "count"),
    [
        (f"{2**63 - 2}.log", 2**63 - 1),
        (f"{2**63 - 1}.log", 5),
        (f"{2**63}.log", 5),
        (f"{'9' * 250}.log", 5),
        ("\u0667.log", 5),
    ],
    ids=["the last one", "without a next one", "beyond int64", "as long as a name can be", "no ASCII digit"],
)
def test_a_number_that_go_cannot_count_on_from_does_not_count(planted: str, count: int) -> None:
    assert layout.restart_count_by_log_dir(["4.log", planted]) == count
