"""A log whose name something else takes while it is followed: the follower waits on, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from workers.api_server.handlers.log_files import LogOptions, stream_log
from workers.logs.log_reader import LogReader

TURNS: Final = 20
"""Turns of the event loop that others get while the name is taken."""
POLL_S: Final = 0.001
DEADLINE_S: Final = 20.0


def _line(word: str) -> bytes:
    return f"2026-01-01T00:00:00.000000000Z stdout F {word}\n".encode()


def _fifo(log: Path) -> None:
    os.mkfifo(log)


def _directory(log: Path) -> None:
    log.mkdir()


def _socket(log: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(log))


def _link_to_a_device(log: Path) -> None:
    log.symlink_to("/dev/zero")


def _link_to_itself(log: Path) -> None:
    log.symlink_to(log.name)


def _link_out(log: Path) -> None:
    log.symlink_to("/etc/passwd")


def _unreadable(log: Path) -> None:
    log.write_bytes(_line("hidden"))
    log.chmod(0)


KINDS: Final = (_fifo, _directory, _socket, _link_to_a_device, _link_to_itself, _link_out, _unreadable)


@pytest.mark.parametrize("take", KINDS)
def test_a_followed_log_goes_on_where_it_is(
    take: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(asyncio.wait_for(_followed(tmp_path / "0.log", take), DEADLINE_S))


async def _followed(log: Path, take: Callable[[Path], None]) -> None:
    log.write_bytes(_line("first"))
    shown, has_ended = bytearray(), asyncio.Event()

    async def write(data: bytes) -> None:
        shown.extend(data)

    async def until(word: bytes) -> None:
        while word not in shown:
            await asyncio.sleep(POLL_S)

    reader = LogReader(log.parent, log)
    following = asyncio.ensure_future(
        stream_log(reader, LogOptions(follow=True), has_ended.is_set, write, poll_period_s=POLL_S)
    )
    await until(b"first")
    with log.open("ab") as monitors:
        log.rename(log.with_name("away"))
        take(log)
        for _ in range(TURNS):
            await asyncio.sleep(POLL_S)
        monitors.write(_line("second"))
    await until(b"second")
    (log.rmdir if log.is_dir() and not log.is_symlink() else log.unlink)()
    log.write_bytes(_line("third"))
    await until(b"third")
    has_ended.set()
    await following
    reader.close()
    assert shown.split() == [b"first", b"second", b"third"]


@pytest.mark.parametrize("take", KINDS)
def test_a_followed_log_ends_while_its_name_is_taken(
    take: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container has ended: what was written is shown, and the answer ends."""
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "0.log"
    log.write_bytes(_line("only"))
    shown = bytearray()

    async def write(data: bytes) -> None:
        shown.extend(data)

    reader = LogReader(tmp_path, log)
    log.rename(tmp_path / "away")
    take(log)
    following = stream_log(reader, LogOptions(follow=True), lambda: True, write, poll_period_s=POLL_S)
    asyncio.run(asyncio.wait_for(following, DEADLINE_S))
    reader.close()
    assert shown == b"only\n"
