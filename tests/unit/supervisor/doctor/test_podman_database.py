"""The free pages of a BoltDB, as its file says them."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from supervisor.doctor.podman_database import free_pages

PAGE = 4096
META, FREE_LIST, LEAF = 0x04, 0x10, 0x02
MAGIC = 0xED0CDAED


def header(number: int, flags: int, count: int) -> bytes:
    return struct.pack("<QHHI", number, flags, count, 0)


def meta(transaction: int, free_list: int, magic: int = MAGIC) -> bytes:
    return header(transaction % 2, META, 0) + struct.pack(
        "<4I6Q", magic, 2, PAGE, 0, 3, 0, free_list, 9, transaction, 0
    )


def database(directory: Path, *pages: bytes) -> Path:
    file = directory / "bolt_state.db"
    file.write_bytes(b"".join(page.ljust(PAGE, b"\0") for page in pages))
    return file


def test_the_newest_transaction_says_where_the_list_is(tmp_path: Path) -> None:
    lists = header(2, FREE_LIST, 7), header(3, FREE_LIST, 12)
    assert free_pages(database(tmp_path, meta(4, 2), meta(5, 3), *lists)) == 12
    assert free_pages(database(tmp_path, meta(6, 2), meta(5, 3), *lists)) == 7


def test_a_count_that_has_no_room_in_a_page_header_follows_it(tmp_path: Path) -> None:
    large = header(2, FREE_LIST, 0xFFFF) + struct.pack("<Q", 70_000)
    assert free_pages(database(tmp_path, meta(4, 2), meta(3, 2), large)) == 70_000


@pytest.mark.parametrize(
    "pages",
    [
        (),
        (b"SQLite format 3\0",),
        (meta(4, 2, magic=0), meta(5, 2), header(2, FREE_LIST, 7)),
        (meta(4, 2),),
        (meta(4, 2), meta(3, 2), header(2, LEAF, 7)),
        (meta(4, 2), meta(3, 2)),
        (meta(4, 2**64 - 1), meta(3, 2), header(2, FREE_LIST, 7)),
        (meta(4, 2**52 - 1), meta(3, 2), header(2, FREE_LIST, 7)),
    ],
)
def test_what_is_no_such_database_has_none(tmp_path: Path, pages: tuple[bytes, ...]) -> None:
    assert free_pages(database(tmp_path, *pages)) is None


def test_a_second_half_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    assert free_pages(database(tmp_path, meta(4, 2), meta(5, 3, magic=1), header(2, FREE_LIST, 7))) == 7


def test_nobody_waits_where_there_is_no_file(tmp_path: Path) -> None:
    assert free_pages(tmp_path / "none") is None
    os.mkfifo(tmp_path / "fifo")
    assert free_pages(tmp_path / "fifo") is None
    assert free_pages(tmp_path) is None
