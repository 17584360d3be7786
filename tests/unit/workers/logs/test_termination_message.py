"""Messages that a container leaves to be read when it ends, whatever it makes of its file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.link.messages.node_worker import Observation, Relisted
from ipc.link.shm.board import Board
from ipc.link.wire.framing import encode_frame
from tests.support.pods import observed, pod, seen
from tests.support.runtime_values import UID, container_labels, inspected
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import InspectedContainer
from workers.logs.pod_dirs import remove_pod_directory
from workers.logs.termination_message import (
    MAX_LOG_BYTES,
    MAX_LOG_LINES,
    MAX_MESSAGE_BYTES,
    MAX_POD_BYTES,
    crash_trace,
    make_termination_log,
    read_termination_message,
    termination_log,
    with_termination_messages,
)
from workers.pleg.publisher import Publisher, within_one_message

PATH = "/dev/termination-log"
LOGS = "logs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of attempt 3 of the container `main`."""
    made = termination_log(str(tmp_path), UID, "main", 3)
    make_termination_log(made, 3)
    return made


def ended(tmp_path: Path, *, path: str = PATH, policy: str = "File", exit_code: int = 1) -> InspectedContainer:
    own = {labels.TERMINATION_MESSAGE_PATH: path, labels.TERMINATION_MESSAGE_POLICY: policy}
    log = tmp_path / LOGS / "main" / "3.log"
    fields: dict[str, Any] = {"state": "exited", "pid": 0, "exit_code": exit_code, "log_path": str(log)}
    return inspected("c1", labels=container_labels("main", 3, **own), **fields)


def message(tmp_path: Path, **fields: Any) -> str:
    return read_termination_message(ended(tmp_path, **fields), str(tmp_path), str(tmp_path / LOGS))


def write_log(tmp_path: Path, *lines: str) -> None:
    log = tmp_path / LOGS / "main" / "3.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(entry(line) for line in lines))


def entry(line: str, tag: str = "F") -> str:
    return f"2026-11-20T08:37:22.791861700+00:00 stdout {tag} {line}\n"


# --- the file ---


def test_any_user_may_write_the_file_and_nobody_else_look_for_it(file: Path, tmp_path: Path) -> None:
    assert file == tmp_path / UID / "main.3.termination-log"
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_container_made_anew_finds_it_empty(file: Path, tmp_path: Path) -> None:
    file.write_text("of the life before")
    file.chmod(0o600)
    make_termination_log(file, 3)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    assert message(tmp_path) == ""


def test_the_files_of_two_attempts_stay(file: Path, tmp_path: Path) -> None:
    for attempt in (4, 5):
        make_termination_log(termination_log(str(tmp_path), UID, "main", attempt), attempt)
    for kept in ("notes", "other.3.termination-log"):
        (file.parent / kept).touch()
    make_termination_log(termination_log(str(tmp_path), UID, "main", 6), 6)
    assert {entry.name for entry in file.parent.iterdir()} == {
        "main.5.termination-log",
        "main.6.termination-log",
        "notes",
        "other.3.termination-log",
    }


def test_a_link_in_its_place_is_not_followed(file: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file.unlink()
    file.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        make_termination_log(file, 3)
    assert victim.read_text() == "precious"


# --- reading it back ---


@pytest.mark.parametrize("exit_code", [0, 1])
def test_the_file_is_read_whatever_the_exit_code(file: Path, tmp_path: Path, exit_code: int) -> None:
    file.write_text("no\nluck\n")
    assert message(tmp_path, exit_code=exit_code) == "no\nluck\n"


def test_the_end_of_a_long_message_is_kept(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"x" * 10_000 + b"the end")
    read = message(tmp_path)
    assert (len(read), read[-8:]) == (MAX_MESSAGE_BYTES, "xthe end")


@pytest.mark.parametrize("content", [b"\xff" * 5000, "\N{SNOWMAN}".encode() * 5000, b"\0" * 9, b"\xed\xa0\x80"])
def test_what_is_no_text_becomes_text_of_no_greater_length(file: Path, tmp_path: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert 0 < len(message(tmp_path).encode()) <= max(MAX_MESSAGE_BYTES, len(content))


def test_a_sparse_file_of_any_size_is_read_at_its_end(file: Path, tmp_path: Path) -> None:
    with file.open("r+b") as sparse:
        sparse.truncate(1 << 40)
    assert message(tmp_path) == "\0" * MAX_MESSAGE_BYTES


def test_without_a_path_there_is_no_message(file: Path, tmp_path: Path) -> None:
    file.write_text("of nobody")
    assert message(tmp_path, path="") == ""


def test_a_file_that_is_gone_says_nothing(file: Path, tmp_path: Path) -> None:
    file.unlink()
    assert message(tmp_path) == ""


def test_a_link_leads_nowhere(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    assert message(tmp_path).startswith("Error on reading termination log ")
    assert "secret" not in message(tmp_path)


def test_a_pipe_holds_nobody_up(file: Path, tmp_path: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    assert message(tmp_path) == ""


def test_a_directory_of_somebody_elses_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main.3.termination-log").write_text("secret")
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / UID).symlink_to(outside)
    assert read_termination_message(ended(tmp_path), str(tmp_path / "pods"), str(tmp_path)) == ""


@pytest.mark.parametrize("name", ["..", "a/../../..", "a\0b", "n" * 300])
def test_spoiled_labels_lead_nowhere(tmp_path: Path, name: str) -> None:
    (tmp_path / ".3.termination-log").write_text("secret")
    found = ended(tmp_path)
    for key in (labels.CONTAINER_NAME, labels.POD_UID):
        spoiled = msgspec.structs.replace(found, labels={**found.labels, key: name})
        assert "secret" not in read_termination_message(spoiled, str(tmp_path / "pods"), str(tmp_path))


# --- the log in its place ---


@pytest.mark.parametrize(
    ("fields", "words", "expected"),
    [
        ({}, "", ""),
        ({"policy": "FallbackToLogsOnError"}, "", "a\nb\n"),
        ({"policy": "FallbackToLogsOnError"}, "own words", "own words"),
        ({"policy": "FallbackToLogsOnError", "exit_code": 0}, "", ""),
        ({"policy": "FallbackToLogsOnError", "path": ""}, "", "a\nb\n"),
    ],
    ids=["by file only", "nothing written", "something written", "no error", "no file"],
)
def test_the_log_stands_for_the_file_after_an_error(
    file: Path, tmp_path: Path, fields: dict[str, Any], words: str, expected: str
) -> None:
    write_log(tmp_path, "a", "b")
    file.write_text(words)
    assert message(tmp_path, **fields) == expected


def test_a_file_that_cannot_be_read_is_told_instead_of_the_log(file: Path, tmp_path: Path) -> None:
    write_log(tmp_path, "a")
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert message(tmp_path, policy="FallbackToLogsOnError").startswith("Error on reading termination log ")


def test_a_log_that_cannot_be_read_is_told(file: Path, tmp_path: Path) -> None:
    assert message(tmp_path, policy="FallbackToLogsOnError").startswith(
        "Error on reading termination message from logs"
    )


def test_the_end_of_a_long_log_is_read(file: Path, tmp_path: Path) -> None:
    write_log(tmp_path, *(f"line {number}" for number in range(5000)))
    read = message(tmp_path, policy="FallbackToLogsOnError")
    assert read == "".join(f"line {number}\n" for number in range(5000 - MAX_LOG_LINES, 5000))


def test_the_end_of_a_log_that_was_rotated_just_before_is_read_with_it(file: Path, tmp_path: Path) -> None:
    write_log(tmp_path, "c", "d")
    log = tmp_path / LOGS / "main" / "3.log"
    log.with_name("3.log.20260101-000000.gz").write_bytes(b"older")
    log.with_name("3.log.20260101-000001").write_text(entry("a") + entry("b"))
    assert message(tmp_path, policy="FallbackToLogsOnError") == "a\nb\nc\nd\n"
    write_log(tmp_path)
    assert message(tmp_path, policy="FallbackToLogsOnError") == "a\nb\n"


def test_a_log_that_has_two_names_is_read_once(file: Path, tmp_path: Path) -> None:
    write_log(tmp_path, "a", "b")
    log = tmp_path / LOGS / "main" / "3.log"
    log.with_name("3.log.20260101-000001").hardlink_to(log)
    assert message(tmp_path, policy="FallbackToLogsOnError") == "a\nb\n"


def test_of_the_last_lines_the_end_is_kept() -> None:
    words = crash_trace("".join(entry(f"{n:03}" + "x" * 97) for n in range(100)).encode(), is_whole=True)
    assert len(words) == MAX_LOG_BYTES
    assert words.endswith("099" + "x" * 97 + "\n")


def test_pieces_of_a_line_are_one_and_half_an_entry_is_none() -> None:
    tail = "alf of an entry\n" + entry("one ", "P") + entry("line") + "2026-11-20T08:37:22+00:00 std"
    assert crash_trace(tail.encode(), is_whole=False) == "one line\n"


# --- all of a pod ---


def test_only_the_newest_two_of_a_name_have_something_to_say() -> None:
    of = pod("a", "b")
    containers = [seen(of, "a", ContainerState.EXITED, n) for n in range(3)] + [seen(of, "b", ContainerState.RUNNING)]
    messages = {container.id: f"from {container.id}" for container in containers}
    told = with_termination_messages(observed(of, *containers), messages)
    assert [(c.id, c.message) for c in told.containers] == [
        ("a-2", "from a-2"),
        ("a-1", "from a-1"),
        ("a-0", ""),
        ("b-0", ""),
    ]


@pytest.mark.parametrize("containers", [1, 2, 3, 4, 10, 50])
def test_the_last_words_of_a_whole_pod_fit_its_row(containers: int) -> None:
    of = pod(*(f"c{number}" for number in range(containers)))
    ended = [seen(of, c.name, ContainerState.EXITED, n) for c in of.spec.containers for n in range(2)]
    told = with_termination_messages(observed(of, *ended), {c.id: "\N{SNOWMAN}" * 1365 for c in ended})
    newest = [c.message for c in told.containers if c.attempt == 1]
    assert all(newest)
    assert sum(len(message.encode()) for message in newest) <= MAX_POD_BYTES
    published = Publisher(Board.create(worker_slots=1, pod_rows=1))
    published.track(of.metadata.uid, 0)
    assert published.record(told).row == 0


def test_more_than_a_row_holds_travels_in_the_message() -> None:
    of = pod("a")
    told = with_termination_messages(observed(of, seen(of, "a", ContainerState.EXITED)), {"a-0": "x" * 4096})
    published = Publisher(Board.create(worker_slots=1, pod_rows=1, pod_row_bytes=1024))
    published.track(of.metadata.uid, 0)
    again = published.record(told)
    assert (again.row, again.status) == (-1, told)


def test_the_words_of_a_thousand_pods_fit_one_message() -> None:
    of = pod("a", "b", "c")
    ended = [seen(of, c.name, ContainerState.EXITED, n) for c in of.spec.containers for n in range(2)]
    told = with_termination_messages(observed(of, *ended), {c.id: "x" * 4096 for c in ended})
    every = [Observation(uid=f"u{n}", observed_at=1.0, changed=True, status=told) for n in range(1000)]
    fitting = within_one_message(every)
    assert fitting[:170] == tuple(every[:170])
    assert [o.uid for o in fitting] == [o.uid for o in every]
    assert fitting[-1].status == observed(of, *ended)
    encode_frame(msgspec.msgpack.encode(Relisted(started_at=1.0, changed=fitting)))


# --- the pod's end ---


def test_everything_of_a_pod_goes(file: Path, tmp_path: Path) -> None:
    remove_pod_directory(str(tmp_path), UID)
    remove_pod_directory(str(tmp_path), UID)
    remove_pod_directory(str(tmp_path), "u" * 300)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uid", ["", ".", "..", "../..", "a/b", "/"])
def test_a_uid_that_is_no_name_removes_nothing(file: Path, tmp_path: Path, uid: str) -> None:
    (tmp_path / "pods" / "a" / "b").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    remove_pod_directory(str(tmp_path / "pods"), uid)
    remove_pod_directory("", UID)
    assert sorted(tmp_path.rglob("*")) == before
