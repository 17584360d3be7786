"""Files whose names something else has taken: read, written and replaced without waiting for anybody."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.regular_files import open_regular_file, read_regular_file, write_regular_file

pytestmark = pytest.mark.timeout(30)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _directory(path: Path) -> None:
    path.mkdir()


def _link_to_a_terminal(path: Path) -> None:
    path.symlink_to("/dev/ptmx")


KINDS: Final = (_fifo, _socket, _directory, _link_to_a_terminal)
FLAGS: Final = (
    os.O_RDONLY,
    os.O_WRONLY,
    os.O_RDWR,
    os.O_WRONLY | os.O_APPEND,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW,
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("take", KINDS)
def test_no_open_waits(take: Callable[[Path], None], flags: int, tmp_path: Path) -> None:
    take(tmp_path / "name")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="name"):
        open_regular_file(tmp_path / "name", flags)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("take", KINDS)
def test_nor_does_a_read_or_a_write(take: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "name"
    take(path)
    with pytest.raises(OSError, match="name"):
        read_regular_file(path, 100)
    with pytest.raises(OSError, match="name"):
        write_regular_file(path, b"text")
    with pytest.raises((OSError, UntrustedFile)):
        read_bounded(path, 100)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 3 << 20])
def test_what_is_read_is_the_begin_of_the_file(size: int, tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(os.urandom(size))
    for most in (1, 100, 1 << 20, 4 << 20):
        assert read_regular_file(tmp_path / "name", most) == (tmp_path / "name").read_bytes()[:most]


def test_a_kernels_file_without_a_size_is_read() -> None:
    assert read_regular_file("/proc/self/status", 1 << 20).startswith(b"Name:")


@pytest.mark.parametrize("take", [_fifo, _socket, _link_to_a_terminal])
def test_a_state_file_replaces_whatever_has_its_name(take: Callable[[Path], None], tmp_path: Path) -> None:
    """And what has the name of its temporary file."""
    for name in ("state", ".state.tmp"):
        take(tmp_path / name)
    write_atomically(tmp_path / "state", b"content")
    assert read_bounded(tmp_path / "state", 100) == b"content"
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize("name", ["state", ".state.tmp"])
def test_a_directory_in_its_way_moves_aside_with_all_that_is_in_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "somebodys").write_text("kept")
    write_atomically(tmp_path / "state", b"content")
    assert read_bounded(tmp_path / "state", 100) == b"content"
    assert (tmp_path / f"{name}.refused" / "somebodys").read_text() == "kept"
