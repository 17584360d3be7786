"""A directory says that something has happened in it: at once, again after a pause, and in no thread."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.sources import directory_watch
from supervisor.sources.directory_watch import DirectoryWatch


@contextlib.contextmanager
def heard_in(directory: Path) -> Iterator[asyncio.Event]:
    """Set by whatever happens there."""
    heard = asyncio.Event()
    with contextlib.closing(DirectoryWatch(str(directory), heard.set)):
        yield heard


async def test_what_comes_changes_and_goes_is_heard(tmp_path: Path) -> None:
    file = tmp_path / "a"
    acts = (
        lambda: file.write_text("1"),
        lambda: file.chmod(0o600),
        lambda: file.rename(tmp_path / "b"),
        lambda: (tmp_path / "b").unlink(),
        tmp_path.rmdir,
    )
    with heard_in(tmp_path) as heard:
        for act in acts:
            act()
            await heard.wait()
            heard.clear()


async def test_the_last_one_of_many_is_heard_after_the_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_watch, "PAUSE_S", 0.01)
    monkeypatch.setattr(directory_watch, "_READ_BYTES", 512)
    with heard_in(tmp_path) as heard:
        for number in range(200):
            (tmp_path / f"{number}").touch()
        for _ in range(3):  # 600 events are many times what one read takes
            await heard.wait()
            heard.clear()


async def test_it_has_no_thread_and_leaves_no_descriptor(tmp_path: Path) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with heard_in(tmp_path) as heard:
        assert threading.active_count() == threads
        (tmp_path / "a").touch()
        await heard.wait()
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_nothing_is_heard_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_watch, "PAUSE_S", 0.0)
    with heard_in(tmp_path) as heard:
        (tmp_path / "a").touch()
        await heard.wait()
        heard.clear()
    (tmp_path / "b").touch()
    await asyncio.sleep(0.01)
    assert not heard.is_set()


async def test_what_is_no_directory_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, number in (("file", errno.ENOTDIR), ("nothing", errno.ENOENT)):
        with pytest.raises(OSError, match=name) as caught:
            DirectoryWatch(str(tmp_path / name), lambda: None)
        assert caught.value.errno == number
