"""Reads container logs from our own files: the newest lines without loading the rest, and lines still to come."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from workers.fs.regular_file import open_regular
from workers.logs.cri_format import LineCutter, LogRenderer

READ_BYTES: Final = 64 * 1024
"""Most bytes read at once."""
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


async def tail_offset(fd: int, lines: int) -> int:
    """Where the last ``lines`` lines begin, in bytes. Reads backwards, never more than needed.

    Counts entries, so that a line in pieces counts once per piece. One that is being written does not count, and is
    part of what is shown, as upstream (cri-client pkg/logs/tail.go, findTailLineStartIndex).
    """
    position, missing = os.fstat(fd).st_size, lines + 1
    while position > 0:
        start = max(0, position - READ_BYTES)
        block = os.pread(fd, position - start, start)
        newlines = block.count(b"\n")
        if newlines >= missing:
            return start + _newline_from_right(block, missing) + 1
        position, missing = start, missing - newlines
        await asyncio.sleep(0)
    return 0


def _newline_from_right(block: bytes, count: int) -> int:
    """Where the ``count``-th newline from the right stands; there are that many."""
    position = len(block)
    for _ in range(count):
        position = block.rindex(b"\n", 0, position)
    return position


class LogReader:
    """Reads one log from a position on. The same log goes on in a new file when the old one was moved away.

    Its short reads of local files are done on the loop: a thread would cost more, and could outlive the descriptor.
    """

    def __init__(self, directory: Path, path: Path) -> None:
        """Raises OSError when it cannot be opened."""
        self._directory = directory
        self._path = path
        self._fd = open_regular(directory, path)
        self._position = 0

    async def skip_to_tail(self, lines: int) -> None:
        """Go on with the last ``lines`` lines."""
        self._position = await tail_offset(self._fd, lines)

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self._fd).st_size

    @property
    def position(self) -> int:
        return self._position

    def read(self) -> bytes:
        """Return the next bytes; empty at the present end of the file."""
        data = os.pread(self._fd, READ_BYTES, self._position)
        self._position += len(data)
        return data

    def begin_anew(self) -> bool:
        """Whether the log goes on from a beginning: in a new file under its name, or in the same one cut to less."""
        if self.size() < self._position:
            self._position = 0
            return True
        try:
            fd = open_regular(self._directory, self._path)
        except OSError:
            return False  # Moved away and not made again yet, or removed with its pod.
        if os.path.sameopenfile(fd, self._fd):
            os.close(fd)
            return False
        os.close(self._fd)
        self._fd, self._position = fd, 0
        return True

    def close(self) -> None:
        os.close(self._fd)


async def stream_log(
    reader: LogReader,
    options: LogOptions,
    ended: Callable[[], bool],
    write: Write,
    poll_period_s: float = POLL_PERIOD_S,
) -> None:
    """Write what the options show of a log; with ``follow`` until it ``ended`` and is read to its end."""
    cutter = LineCutter()
    renderer = LogRenderer(
        timestamps=options.timestamps, since=options.since, limit_bytes=options.limit_bytes, stream=options.stream
    )
    goal = reader.size()
    while not renderer.full and (options.follow or reader.position < goal):
        # Asked before reading: what was written before the end is read after it.
        complete = not options.follow or ended()
        data = reader.read()
        if data:
            await _write_shown(renderer.render(cutter.feed(data)), write)
        elif options.follow and reader.begin_anew():
            cutter.reset()
        elif complete:
            return
        else:
            await asyncio.sleep(poll_period_s)


async def _write_shown(shown: bytes, write: Write) -> None:
    if shown:
        await write(shown)
    await asyncio.sleep(0)  # Others get their turn, however long the log and fast the client.
