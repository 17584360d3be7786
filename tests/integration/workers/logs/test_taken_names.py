"""A log whose name something else takes while it is followed: the follower waits on, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.shown_log import open_log
from workers.api_server.handlers.log_files import LogOptions, stream_log

TURNS: Final = 20
"""Looks of the follower at each step: many, while the name is taken."""
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
    """Each step is taken when the follower has shown what was written before it."""
    steps = iter(_steps(log, take))
    next(steps)
    shown = bytearray()
    turns = 0

    async def write(data: bytes) -> None:
        shown.extend(data)

    def has_ended() -> bool:
        nonlocal turns
        turns += 1
        return turns > TURNS

    async with open_log(log) as opened:
        for word in (b"first", b"second", b"third"):
            turns = 0
            await stream_log(opened, LogOptions(follow=True), has_ended, write, poll_period_s=POLL_S)
            assert bytes(shown).split()[-1] == word
            next(steps, None)
    assert bytes(shown).split() == [b"first", b"second", b"third"]


def _steps(log: Path, take: Callable[[Path], None]) -> Iterator[None]:
    log.write_bytes(_line("first"))
    with log.open("ab", buffering=0) as monitors:
        yield
        log.rename(log.with_name("away"))
        take(log)
        monitors.write(_line("second"))
        yield
    (log.rmdir if log.is_dir() and not log.is_symlink() else log.unlink)()
    log.write_bytes(_line("third"))
    yield


@pytest.mark.parametrize("take", KINDS)
def test_a_followed_log_ends_while_its_name_is_taken(
    take: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its container has ended: all that was written is shown, and the answer ends."""
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "0.log"
    log.write_bytes(_line("only"))
    shown = bytearray()

    async def write(data: bytes) -> None:
        shown.extend(data)

    async def follow() -> None:
        async with open_log(log) as opened:
            log.rename(tmp_path / "away")
            take(log)
            await stream_log(opened, LogOptions(follow=True), lambda: True, write, poll_period_s=POLL_S)

    asyncio.run(asyncio.wait_for(follow(), DEADLINE_S))
    assert bytes(shown) == b"only\n"
