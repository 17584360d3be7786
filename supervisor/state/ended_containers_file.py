"""Ends of containers on disk, where they outlive containers and the host's end: `supervisor.state.ends_journal`.

All changes since the last write are appended at once and synced once. When the file has become twice as large as what
it says, it is written anew. Its date says when the agent was alive: every minute it is renewed, which nobody waits for.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ipc.host.atomic_file import UntrustedFile, move_aside, read_bounded, write_atomically
from ipc.host.clock import Clock
from ipc.host.private_directories import make_private
from supervisor.state.ends_journal import MAX_LIVE_BYTES, Ends, Journal, decode_journal, encode_journal, encode_lines
from supervisor.state.throttled_saver import ThrottledSaver, Write

FILE: Final = "ended_containers"
MIN_ROOM_BYTES: Final = 256 << 10
"""A file that is smaller than this is not worth rewriting."""
MAX_FILE_BYTES: Final = 3 * MAX_LIVE_BYTES
"""Largest file that is read: more than one ever has."""
RETRY_S: Final = 5.0
ALIVE_PERIOD_S: Final = 60.0
"""Seconds between two signs of life."""

log = logging.getLogger(__name__)


class EndsOwner(Protocol):
    """Owner of the ends."""

    version: int

    def changed_after(self, version: int) -> dict[str, Ends]: ...
    def everything(self) -> dict[str, Ends]: ...


class Restored(msgspec.Struct, frozen=True):
    """Content of the file that an earlier agent has left."""

    pods: dict[str, Ends]
    alive_at: float
    """When that agent was alive for certain, in epoch seconds; 0.0 when nobody knows."""


class EndedContainersFile:
    """One file. Its methods block: for a thread, and only one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        """Bytes of the file as it was left."""
        self._room = 0
        """How much may be appended. 0: the next write is a rewrite, because it is the first, or the last has failed."""

    def load(self) -> Restored:
        """Ends as they were written, none without a file. One that is damaged, or cannot be read, is told and moved
        aside; it is believed as far as its lines are whole."""
        nothing = Restored({}, 0.0)
        try:
            alive_at = os.stat(self._path, follow_symlinks=False).st_mtime
            journal = decode_journal(read_bounded(self._path, MAX_FILE_BYTES))
        except FileNotFoundError:
            return nothing
        except (OSError, UntrustedFile) as error:
            why = error.strerror if isinstance(error, OSError) else error
            log.error("ends of containers %s cannot be used: %s%s", self._path, why, move_aside(self._path))
            return nothing
        if journal.damaged:
            log.error("ends of containers %s: %s%s", self._path, _damage(journal), move_aside(self._path))
        return Restored(journal.pods, alive_at)

    def write(self, changed: Mapping[str, Ends], everything: Mapping[str, Ends]) -> None:
        """Add what changed, or write everything, if that is due; without a change a sign of life. Raises OSError; what
        was there can still be loaded."""
        data = encode_lines(changed)
        if not data and self._touch():
            return
        if not self._room or len(data) > self._room or not self._append(data):
            self._rewrite(everything)

    def _touch(self) -> bool:
        """False when there is no file. A change comes with all that is known: so nothing is written before the ends of
        an earlier agent are."""
        try:
            os.utime(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _append(self, data: bytes) -> bool:
        """False when the file is not as it was left."""
        room, self._room = self._room, 0
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            if os.fstat(descriptor).st_size != self._size:
                return False
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fdatasync(descriptor)
        self._size += len(data)
        self._room = room - len(data)
        return True

    def _rewrite(self, everything: Mapping[str, Ends]) -> None:
        self._room = 0
        data = encode_journal(everything)
        make_private(self._path.parent)
        write_atomically(self._path, data)
        self._size = len(data)
        self._room = max(len(data), MIN_ROOM_BYTES)


def _damage(journal: Journal) -> str:
    shown = ", ".join(map(str, journal.damaged[:5]))
    return f"damaged in {len(journal.damaged)} lines ({shown}); the ends of {len(journal.pods)} pods are known"


class EndedContainersCheckpoint:
    """When the file is written (`supervisor.state.throttled_saver`): after every event that has changed something."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._file = EndedContainersFile(directory / FILE)
        self._clock = clock
        self._saver = ThrottledSaver[tuple[int, int]]("ends of containers", (0, -1), clock, log, retry_s=RETRY_S)
        """The version of the ends, and of the sign of life."""

    def restore(self) -> Restored:
        """Ends that an earlier agent has kept."""
        return self._file.load()

    def keep(self, ends: EndsOwner) -> None:
        """Write what is new. To be called after every event."""
        version = (ends.version, int(self._clock.now().mono / ALIVE_PERIOD_S))
        if version != self._saver.written:
            self._saver.keep(lambda: version, lambda _: self._write(ends))

    async def close(self, ends: EndsOwner) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: (ends.version, -1), lambda _: self._write(ends))

    def _write(self, ends: EndsOwner) -> Write:
        changed = ends.changed_after(self._saver.written[0])
        return functools.partial(self._file.write, changed, ends.everything())
