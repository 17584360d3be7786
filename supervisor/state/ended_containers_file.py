"""Runs of containers on disk, where they outlive containers and the host's end: `supervisor.state.ends_journal`.

All changes since the last write are appended at once and synced once (`supervisor.state.appended_file`). Beginnings and
ends are written at once; all else goes with them, or within a second, so that what a worker removes costs no flush a
pod. The file's date says when the agent was alive: every minute it is renewed, which nobody waits for.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ipc.host.atomic_file import move_aside
from ipc.host.clock import Clock
from ipc.host.state_file import usable_state
from ipc.k8s.kubecontainer.remembered_ends import RememberedPod
from supervisor.state.appended_file import AppendedFile
from supervisor.state.ends_journal import MAX_LIVE_BYTES, Journal, decode_journal, encode_journal, encode_lines
from supervisor.state.throttled_saver import ThrottledSaver, Write

FILE: Final = "ended_containers"
MIN_ROOM_BYTES: Final = 256 << 10
"""A file that is smaller than this is not worth rewriting."""
MAX_FILE_BYTES: Final = 3 * MAX_LIVE_BYTES
"""Largest file that is read: more than one ever has."""
RETRY_S: Final = 5.0
PERIOD_S: Final = 1.0
"""Seconds for which a change waits that is not urgent."""
ALIVE_PERIOD_S: Final = 60.0
"""Seconds between two signs of life."""

log = logging.getLogger(__name__)


class EndsOwner(Protocol):
    """Owner of the runs."""

    version: int
    urgent_version: int
    """The newest change that is to be written at once."""

    def changed_after(self, version: int) -> dict[str, RememberedPod]: ...
    def everything(self) -> dict[str, RememberedPod]: ...


class Restored(msgspec.Struct, frozen=True):
    """Content of the file that an earlier agent has left."""

    pods: dict[str, RememberedPod]
    alive_at: float
    """When that agent was alive for certain, in epoch seconds; 0.0 when nobody knows."""


class EndedContainersFile:
    """One file. Its methods block: for a thread, and only one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = AppendedFile(path, MIN_ROOM_BYTES, is_synced=True)

    def load(self) -> Restored:
        """Ends as they were written, none without a file. One that is damaged, or cannot be read, is told and moved
        aside; it is believed as far as its lines are whole."""
        alive_at = 0.0
        with contextlib.suppress(OSError):
            alive_at = os.stat(self._path, follow_symlinks=False).st_mtime
        journal = usable_state(self._path, MAX_FILE_BYTES, decode_journal, "ends of containers", log)
        if journal is None:
            return Restored({}, 0.0)
        if journal.damaged:
            log.error("ends of containers %s: %s%s", self._path, _damage(journal), move_aside(self._path))
        return Restored(journal.pods, alive_at)

    def write(self, changed: Mapping[str, RememberedPod], everything: Mapping[str, RememberedPod]) -> None:
        """Add what changed, or write everything, if that is due; without a change a sign of life. Raises OSError; what
        was there can still be loaded."""
        data = encode_lines(changed)
        if not data and self._touch():
            return
        if not self._file.append(data):
            self._file.rewrite(encode_journal(everything))

    def _touch(self) -> bool:
        """False when there is no file. A change comes with all that is known: so nothing is written before the ends of
        an earlier agent are."""
        try:
            os.utime(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def _damage(journal: Journal) -> str:
    shown = ", ".join(map(str, journal.damaged[:5]))
    return f"damaged in {len(journal.damaged)} lines ({shown}); the ends of {len(journal.pods)} pods are known"


class EndedContainersCheckpoint:
    """When the file is written (`supervisor.state.throttled_saver`): after every event that has changed something."""

    def __init__(self, directory: Path, clock: Clock, ended: Callable[[], None]) -> None:
        """``ended`` is called after every write."""
        self._file = EndedContainersFile(directory / FILE)
        self._clock = clock
        self._saver = ThrottledSaver[tuple[int, int]](
            "ends of containers", (0, -1), clock, log, period_s=PERIOD_S, retry_s=RETRY_S, ended=ended
        )
        """The version of the ends, and of the sign of life."""

    def restore(self) -> Restored:
        """Ends that an earlier agent has kept."""
        return self._file.load()

    def is_kept(self, version: int) -> bool:
        """Whether the ends of that version are on disk, or writes fail."""
        return self._saver.is_kept(lambda written: version <= written[0])

    def keep(self, ends: EndsOwner, *, is_urgent: bool = False) -> None:
        """Write what is new. To be called after every event. ``is_urgent``: a worker waits for it."""
        version = (ends.version, int(self._clock.now().mono / ALIVE_PERIOD_S))
        if self._saver.is_due(version):
            urgent = is_urgent or ends.urgent_version > self._saver.written[0]
            self._saver.keep(lambda: version, lambda _: self._write(ends), is_urgent=urgent)

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._saver.write_again()

    async def close(self, ends: EndsOwner) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: (ends.version, -1), lambda _: self._write(ends))

    def _write(self, ends: EndsOwner) -> Write:
        changed = ends.changed_after(self._saver.written[0])
        return functools.partial(self._file.write, changed, ends.everything())
