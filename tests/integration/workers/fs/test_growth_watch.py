"""Files that grow are told of once, and files that do not cost nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Hashable
from pathlib import Path

import pytest

from tests.support.open_files import open_files, open_files_before
from workers.fs.growth_watch import GrowthWatch


class Watched:
    """A watch, and the keys that it has told."""

    def __init__(self, *, and_links: bool = False) -> None:
        self.told: asyncio.Queue[Hashable] = asyncio.Queue()
        self.watch = GrowthWatch(self.told.put_nowait, and_links=and_links)

    def arm(self, key: str, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY)
        try:
            self.watch.arm(key, fd)
        finally:
            os.close(fd)


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched()
    yield made
    made.watch.close()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


async def test_growth_is_told_once_for_each_time_that_it_is_armed(watched: Watched, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.touch()
    watched.arm("one", one)
    watched.arm("other", other)
    for _ in range(10):
        grow(one)
    grow(other)
    assert [await watched.told.get(), await watched.told.get()] == ["one", "other"]
    assert watched.told.empty(), "told once, in the order of events"
    watched.arm("one", one)
    grow(one)
    assert await watched.told.get() == "one"


async def test_a_file_is_watched_under_whatever_name_it_gets(watched: Watched, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.touch()
    watched.arm("log", file)
    file.rename(tmp_path / "old")
    grow(file)
    grow(tmp_path / "old")
    assert await watched.told.get() == "log"


async def test_what_is_disarmed_is_told_no_more(watched: Watched, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.touch()
    watched.arm("one", one)
    watched.arm("other", other)
    watched.watch.disarm("one")
    watched.watch.disarm("nobody")
    grow(one)
    grow(other)
    assert await watched.told.get() == "other"
    one.unlink()
    other.unlink()
    watched.arm("again", tmp_path)
    assert watched.told.empty()


async def test_nothing_stays_open(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.touch()
    before = open_files_before()
    watched = Watched()
    watched.arm("log", file)
    watched.watch.close()
    assert open_files() <= before


async def test_a_file_that_another_one_replaces_is_told_where_links_count(tmp_path: Path) -> None:
    file, other = tmp_path / "log", tmp_path / "other"
    for path in (file, other):
        path.touch()
    watched = Watched(and_links=True)
    try:
        with file.open():  # else its inode goes with the name
            watched.arm("log", file)
            other.rename(file)
            async with asyncio.timeout(10):
                assert await watched.told.get() == "log"
    finally:
        watched.watch.close()
