"""Streams what a client has asked for of a container's log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from workers.logs.cri_format import LogRenderer
from workers.logs.open_log import OpenLog, Piece

POLL_PERIOD_S: Final = 0.2
"""How often a followed log is looked at again when it had nothing new."""

Write = Callable[[bytes], Awaitable[None]]


class UnreadableLog(Exception):
    """The log's file system fails, or does not answer; says how."""


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
    log: OpenLog,
    options: LogOptions,
    ended: Callable[[], bool],
    write: Write,
    poll_period_s: float = POLL_PERIOD_S,
) -> None:
    """Write what the options show of a log; with ``follow`` until it ``ended`` and is read to its end. Raises
    UnreadableLog."""
    renderer = LogRenderer(
        timestamps=options.timestamps, since=options.since, limit_bytes=options.limit_bytes, stream=options.stream
    )
    is_whole = False
    while not renderer.full and (options.follow or not is_whole):
        # Asked before reading: what was written before the end is read after it.
        complete = not options.follow or ended()
        lines, is_whole, has_gone_on = await _next(log, options)
        if lines is not None:
            await _write_shown(renderer.render(lines), write)
        elif has_gone_on:
            continue
        elif complete:
            return
        else:
            await asyncio.sleep(poll_period_s)


async def _next(log: OpenLog, options: LogOptions) -> Piece:
    try:
        return await log.next(follow=options.follow)
    except OSError as error:
        raise UnreadableLog(error.strerror or str(error)) from None


async def _write_shown(shown: bytes, write: Write) -> None:
    if shown:
        await write(shown)
    await asyncio.sleep(0)  # Others get their turn, however long the log and fast the client.
