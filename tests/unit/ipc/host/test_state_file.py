"""A file of state may be anything: nothing that lies there keeps the agent from its start."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ipc.host.atomic_file import remove_durably, write_atomically
from ipc.host.state_file import StateUnusable, has_content, load_state, usable_state

MAX_BYTES = 1000
log = logging.getLogger(__name__)


def decode(data: bytes) -> dict[str, str]:
    return msgspec.json.decode(data, type=dict[str, str])


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 30)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a byte that is no UTF-8": lambda path: path.write_bytes(b'{"a":"\xff"}'),
    "sparse": _sparse,
    "zeros": lambda path: path.write_bytes(bytes(MAX_BYTES)),
    "unreadable": lambda path: path.touch(mode=0),
    "nested": lambda path: path.write_bytes(b"[" * MAX_BYTES),
    "another type": lambda path: path.write_bytes(b"[1]"),
    "a FIFO": os.mkfifo,
    "a directory": lambda path: (path / "somebody's").mkdir(parents=True),
    "a link": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_whatever_lies_there_is_moved_aside_with_a_word_and_made_anew(
    tmp_path: Path, make: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.json"
    make(path)
    assert usable_state(path, MAX_BYTES, decode, "names", log) is None
    assert f"names {path} cannot be used: " in caplog.text
    assert caplog.text.strip().endswith("; moved to state.json.refused")
    assert not os.path.lexists(path)
    write_atomically(path, b'{"a":"b"}')
    assert usable_state(path, MAX_BYTES, decode, "names", log) == {"a": "b"}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["state.json", ".state.json.tmp"])
def test_whatever_lies_there_is_written_over_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], object], name: str
) -> None:
    path = tmp_path / "state.json"
    make(tmp_path / name)
    write_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert not os.path.lexists(tmp_path / ".state.json.tmp")
    assert remove_durably(path)


def test_what_was_moved_aside_before_keeps_its_place_if_it_cannot_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    (tmp_path / "state.json.refused" / "kept").mkdir(parents=True)
    path.write_bytes(b"?")
    with pytest.raises(StateUnusable, match=r"moved to state\.json\.refused2"):
        load_state(path, MAX_BYTES, decode, "names")


def test_a_file_in_a_place_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateUnusable, match="Not a directory"):
        load_state(tmp_path / "file" / "state.json", MAX_BYTES, decode, "names")


def test_a_process_without_descriptors_does_not_blame_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"{}")

    def exhausted(_: bytes) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with pytest.raises(StateUnusable, match=r"Too many open files$"):
        load_state(path, MAX_BYTES, exhausted, "names")
    assert path.exists()


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_nothing_else_has_the_content(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "file")
    assert not has_content(tmp_path / "file", b"content")


def test_the_same_content_is_no_reason_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert has_content(tmp_path / "file", b"content")
