"""Restarts of containers that were asked for and are not carried out yet, on disk: one file, replaced as a whole.

Without it a container that was stopped for its restart when the agent died would stay down, if its restart policy is
Never. A file that cannot be used costs these restarts.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.clock import Clock
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from supervisor.state.checked_file import decode_checked, encode_checked
from supervisor.state.throttled_saver import ThrottledSaver, Write

FILE: Final = "container_restarts"
VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
RETRY_S: Final = 5.0
MAX_FILE_BYTES: Final = 4 << 20
"""Largest file that is read."""

log = logging.getLogger(__name__)

Restarts = dict[str, dict[str, int | None]]
"""By UID: ids of the containers to replace, and the grace periods that were asked for, in seconds."""


def save(path: Path, restarts: Mapping[str, Mapping[str, int | None]]) -> None:
    """Replace the file. Raises OSError; it is whole then, the old or the new one."""
    make_private(path.parent)
    write_atomically(path, encode_checked(VERSION, msgspec.json.encode(restarts)))


def load(path: Path) -> Restarts:
    """Restarts as they were saved; none of a file that is missing or cannot be used: that is logged."""
    return usable_state(path, MAX_FILE_BYTES, _decode, "restarts of containers", log) or {}


def _decode(data: bytes) -> Restarts:
    return msgspec.json.decode(decode_checked(VERSION, data), type=Restarts)


class ContainerRestartsCheckpoint:
    """When the file is written (`supervisor.state.throttled_saver`): after every event that has changed something."""

    def __init__(self, directory: Path, clock: Clock, ended: Callable[[], None]) -> None:
        """``ended`` is called after every write."""
        self._path = directory / FILE
        self._saver = ThrottledSaver[int]("restarts of containers", 0, clock, log, retry_s=RETRY_S, ended=ended)

    def restore(self) -> Restarts:
        """Restarts that an earlier run of the agent has saved."""
        return load(self._path)

    def is_kept(self, version: int) -> bool:
        """Whether that version is on disk, or writes fail."""
        return self._saver.is_kept(lambda written: version <= written)

    def keep(self, version: int, restarts: Callable[[], Restarts]) -> None:
        """Write what is new. To be called after every event; ``version`` says how new ``restarts`` are."""
        if self._saver.is_due(version):
            self._saver.keep(lambda: version, self._write(restarts))

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._saver.write_again()

    async def close(self, version: int, restarts: Callable[[], Restarts]) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: version, self._write(restarts))

    def _write(self, restarts: Callable[[], Restarts]) -> Callable[[int], Write]:
        return lambda _: functools.partial(save, self._path, restarts())
