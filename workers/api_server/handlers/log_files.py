"""Streams what a client has asked for of a container's log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from workers.logs.cri_format import LogRenderer
from workers.logs.log_reader import LogReader

POLL_PERIOD_S: Final = 0.2
"""How often a followed log is looked at again when it had nothing new."""

Write = Callable[[bytes], Awaitable[None]]


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PodLogOptions, as far as a file can answer them."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: float = 0.0
    """Epoch seconds; 0.0 is the beginning."""
    limit_bytes: int | None = None
    stream: str = ""
    """``stdout`` or ``stderr``; empty for both."""


async def stream_log(
    reader: LogReader,
    options: LogOptions,
    ended: Callable[[], bool],
    write: Write,
    poll_period_s: float = POLL_PERIOD_S,
) -> None:
    """Write what the options show of a log; with ``follow`` until it ``ended`` and is read to its end."""
    renderer = LogRenderer(
        timestamps=options.timestamps, since=options.since, limit_bytes=options.limit_bytes, stream=options.stream
    )
    while not renderer.full and (options.follow or not reader.has_reached_goal):
        # Asked before reading: what was written before the end, or before the log went on elsewhere, is read after it.
        complete = not options.follow or ended()
        moved = options.follow and reader.has_moved()
        lines = reader.read_lines()
        if lines is not None:
            await _write_shown(renderer.render(lines), write)
        elif moved and reader.go_on():
            await asyncio.sleep(0)
        elif complete:
            return
        else:
            await asyncio.sleep(poll_period_s)


async def _write_shown(shown: bytes, write: Write) -> None:
    if shown:
        await write(shown)
    await asyncio.sleep(0)  # Others get their turn, however long the log and fast the client.
