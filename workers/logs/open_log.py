"""A log that a client reads: every call of its file system is made in a thread, for which nobody else waits.

Logs lie where the operator or a user has put them: on a file system that may hang, or that somebody mounts there.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

from workers.fs.fs_executor import FsExecutor
from workers.logs.log_reader import LogReader

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Piece(NamedTuple):
    """Result of one step."""

    lines: list[bytes] | None
    """Lines that have become complete; None at the present end."""
    is_whole: bool
    """Whether all is read that was there at first."""
    has_gone_on: bool = False
    """The log goes on in another file, or at the begin of this one."""


class OpenLog:
    """One life of a container, read by one client. Its steps come one after another."""

    def __init__(self, files: FsExecutor, directory: Path, path: Path, since: float = 0.0) -> None:
        """``since``, in epoch seconds: rotated files that are older are left out. `open` comes next."""
        self._files = files
        self._directory = directory
        self.path = path
        self._since = since
        self._reader: LogReader | None = None
        self._lock = threading.Lock()
        """Held for an instant: of what follows."""
        self._is_stepping = False
        self._is_over = False
        self.subject: Final = path.parent.parent
        """The pod's logs, which lie in one directory, have one thread."""

    async def open(self) -> None:
        """Raises OSError: where there is nothing to read, and TimeoutError where the file system does not answer. So
        does every other step."""
        await self._run(self._open)

    async def skip_to_tail(self, lines: int) -> None:
        """Go on with the last ``lines`` lines. Before anything is read."""
        await self._run(self._opened().skip_to_tail, lines)

    async def skip_to_time(self) -> None:
        """Go on with lines that are about as old as ``since``. Before anything is read."""
        await self._run(self._opened().skip_to_time)

    async def next(self, *, follow: bool) -> Piece:
        """The next lines. ``follow``: also of what comes after the file that was the newest."""
        return await self._run(next_piece, self._opened(), follow)

    async def close(self) -> None:
        """In a thread, too. A step that is under way, and may hang, does it at its end instead."""
        with self._lock:
            self._is_over = True
            is_due = self._reader is not None and not self._is_stepping
        if is_due:
            with contextlib.suppress(TimeoutError):  # another log of the pod hangs, as this one would
                await self._run(lambda: None)

    def _opened(self) -> LogReader:
        assert self._reader is not None, "it was opened"
        return self._reader

    async def _run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        return await self._files.run(self.subject, self._step, function, *args)

    def _step(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        self._is_stepping = True
        try:
            return function(*args)
        finally:
            with self._lock:
                self._is_stepping = False
                is_due = self._is_over
            if is_due and self._reader is not None:
                reader, self._reader = self._reader, None
                reader.close()

    def _open(self) -> None:
        self._reader = LogReader(self._directory, self.path, self._since)


def next_piece(reader: LogReader, follow: bool) -> Piece:  # an argument of a thread's function
    """One step of a reader. What was written before the log went on elsewhere is read before what came after."""
    moved = follow and reader.has_moved()
    lines = reader.read_lines()
    has_gone_on = lines is None and moved and reader.go_on()
    return Piece(lines, reader.has_reached_goal, has_gone_on)
