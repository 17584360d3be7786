"""Log files: the CRI's lines, the end of a file, and which file is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api_server import container_status, pod_changed, status_of
from workers.api_server.core.status_errors import ApiError
from workers.api_server.handlers.log_choice import LogChoice, choose_log, has_ended
from workers.logs import log_reader
from workers.logs.cri_format import MAX_ENTRY_BYTES, LineCutter, LogEntry, LogRenderer, parse_entry

STAMP = b"2026-11-20T08:37:22.791861700+00:00"


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (STAMP + b" stdout F out", LogEntry(STAMP, b"stdout", False, b"out")),
        (STAMP + b" stderr P a  b ", LogEntry(STAMP, b"stderr", True, b"a  b ")),
        (STAMP + b" stdout F ", LogEntry(STAMP, b"stdout", False, b"")),
        (STAMP + b" stdout F", LogEntry(STAMP, b"stdout", False, b"")),
        (STAMP + b" stdout F:x:y tagged", LogEntry(STAMP, b"stdout", False, b"tagged")),
        (b"", None),
        (b"garbage", None),
        (STAMP + b" stdin F x", None),
        (STAMP + b" stdout X x", None),
        (b" stdout F x", None),
    ],
)
def test_entries(line: bytes, entry: LogEntry | None) -> None:
    assert parse_entry(line) == entry


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_are_cut_wherever_the_pieces_end(lines: list[bytes], data: Any) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter, found = LineCutter(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += cutter.feed(stream[:size])
        stream = stream[size:]
    assert found == lines


def test_an_endless_line_is_skipped_and_not_kept() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"one\n" + b"x" * (MAX_ENTRY_BYTES + 1)) == [b"one"]
    assert cutter.feed(b"x" * MAX_ENTRY_BYTES) == []
    assert cutter.feed(b"xx\ntwo\n") == [b"two"]


def render(*entries: bytes, **options: Any) -> bytes:
    return LogRenderer(**({"timestamps": False} | options)).render(list(entries))


def test_a_line_in_pieces_is_one_line() -> None:
    entries = (b"T stdout P one ", b"T stdout P two ", b"T stdout F three", b"T stdout F four")
    assert render(*entries) == b"one two three\nfour\n"
    assert render(*entries, timestamps=True) == b"T one two three\nT four\n"


def test_garbage_is_left_out() -> None:
    assert render(b"\xff\xfe", b"T stdout F ok") == b"ok\n"


def test_only_what_is_recent() -> None:
    entries = [f"2026-01-01T00:00:0{n}Z stdout F {n}".encode() for n in range(4)]
    assert render(*entries, b"bad-time stdout F after", since=1767225602.0) == b"2\n3\nafter\n"


def test_a_limit_in_bytes() -> None:
    renderer = LogRenderer(timestamps=False, limit_bytes=5)
    assert renderer.render([b"T stdout F one"]) == b"one\n"
    assert not renderer.full
    assert renderer.render([b"T stdout F two"]) == b"t"
    assert renderer.full


@pytest.mark.parametrize("block", [1, 3, 7, 64 * 1024])
def test_the_tail_of_a_file(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is being written is shown and does not count."""
    monkeypatch.setattr(log_reader, "READ_BYTES", block)
    path = tmp_path / "log"
    for text in (b"", b"\n", b"one", b"one\n", b"one\ntwo\nthree\n", b"one\ntwo\nthree", b"\n\n\n", b"a\n" * 50):
        path.write_bytes(text)
        fd = os.open(path, os.O_RDONLY)
        lines = text.splitlines(keepends=True)
        complete = [line for line in lines if line.endswith(b"\n")]
        for count in (0, 1, 2, 3, 49, 1000):
            before = complete[: len(complete) - min(count, len(complete))]
            expected = text[len(b"".join(before)) :]
            assert text[log_reader.tail_offset(fd, count) :] == expected, (text, count)
        os.close(fd)


ENDED = {"terminated": {"exitCode": 1, "containerID": "podman://1"}}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("status", "previous", "attempt"),
    [
        ({"restartCount": 0}, False, 0),
        ({"restartCount": 3, "lastState": ENDED}, False, 3),
        ({"restartCount": 3, "lastState": ENDED}, True, 2),
        ({"restartCount": 3, "state": ENDED, "lastState": ENDED}, False, 3),
        ({"restartCount": 3, "state": ENDED, "lastState": ENDED}, True, 2),
        # In back-off the newest life is the one that ended last.
        ({"restartCount": 3, "state": WAITING, "lastState": ENDED}, False, 3),
        ({"restartCount": 3, "state": WAITING, "lastState": ENDED}, True, 3),
    ],
)
def test_which_life_of_a_container(status: dict[str, Any], previous: bool, attempt: int) -> None:
    pod = pod_changed(1, "web", status=status_of(containerStatuses=[container_status("app", **status)]))
    assert choose_log(pod, "", previous) == LogChoice("app", attempt)


@pytest.mark.parametrize(
    ("status", "container", "previous", "words"),
    [
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, "", False, "waiting to start: ContainerCreating"),
        ({"state": {"waiting": {"reason": "ErrImagePull"}}}, "", False, "waiting to start: image can't be pulled"),
        ({"state": {}}, "", False, "waiting to start: no logs yet"),
        ({"state": {"terminated": {"exitCode": 0}}}, "", False, 'container "app" in pod "web" is terminated'),
        ({}, "", True, 'previous terminated container "app" in pod "web" not found'),
        ({"restartCount": 0, "lastState": ENDED}, "", True, "not found"),
        ({}, "other", False, "container other is not valid for pod web"),
    ],
)
def test_there_is_no_log(status: dict[str, Any], container: str, previous: bool, words: str) -> None:
    pod = pod_changed(1, "web", status=status_of(containerStatuses=[container_status("app", **status)]))
    with pytest.raises(ApiError, match=words) as error:
        choose_log(pod, container, previous)
    assert error.value.status.code == 400


@pytest.mark.parametrize(
    ("container", "choice"),
    [("", LogChoice("app", 0)), ("setup", LogChoice("setup", 0)), ("debug", LogChoice("debug", 0))],
)
def test_one_regular_container_needs_no_name(container: str, choice: LogChoice) -> None:
    assert choose_log(pod_changed(1, "web", init=("setup",), ephemeral=("debug",)), container, False) == choice


def test_several_are_named_in_the_order_of_their_lists() -> None:
    pod = pod_changed(1, "web", containers=("app", "log"), init=("setup",), ephemeral=("debug",))
    with pytest.raises(ApiError, match=r"must be specified for pod web, choose one of: \[setup app log debug\]"):
        choose_log(pod, "", False)


def test_a_container_without_a_status_is_not_available() -> None:
    with pytest.raises(ApiError, match="is not available"):
        choose_log(pod_changed(1, "web", status=status_of(phase="Pending")), "app", False)


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({"restartCount": 2}, False),
        ({"restartCount": 3}, True),
        ({"restartCount": 2, "state": ENDED}, True),
        ({"restartCount": 2, "state": WAITING, "lastState": ENDED}, True),
    ],
)
def test_when_a_life_is_over(status: dict[str, Any], ended: bool) -> None:
    pod = pod_changed(1, "web", status=status_of(containerStatuses=[container_status("app", **status)]))
    assert has_ended(pod, LogChoice("app", 2)) is ended
    assert has_ended(None, LogChoice("app", 2))
