"""Watch over the agent's own files: what goes away while the agent runs is written again, and told once.

Somebody empties the state directory, or removes it. Pods run on, but none starts any more: Podman misses the profile
that its settings name. And the next start would find nothing of what this one knew.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.private_directories import make_private
from ipc.messages import event_reasons
from ipc.messages.event_reasons import EventReason
from ipc.text.safe_text import safe_line
from supervisor.config.resolution.child_settings import SECCOMP_DIR
from supervisor.config.resolution.node_files import KUBECONFIG, PKI_DIR
from supervisor.config.seccomp_profiles import SANDBOX_PROFILE
from supervisor.config.settings import PODS_DIR, Settings
from supervisor.loop_checkpoints import FILES
from supervisor.processes.podman_service import CONF_FILE, CONMON_FILE
from supervisor.record.node_events import BOOT_FILE
from supervisor.sources.manager import CHECKPOINT_FILE, NAMES_FILE
from supervisor.sources.secret_places import KEY_FILE
from supervisor.sources.source_place import FILE as PLACE_FILE
from supervisor.state import label_key_file, shutdown_state
from supervisor.state.directory_owner import OWNER_FILE

PERIOD_S: Final = 2.0
"""Seconds between two looks."""
MAX_BYTES: Final = 1 << 20
"""Largest file that is remembered."""
MAX_NAMED: Final = 20
"""Most names in one event."""
REMEMBERED: Final = (
    CONF_FILE,
    CONMON_FILE,
    SANDBOX_PROFILE,
    label_key_file.NAME,
    KEY_FILE,
    BOOT_FILE,
    shutdown_state.FILE,
)
"""Small files that are written once: their contents are remembered."""
WRITTEN_ANEW: Final = (CHECKPOINT_FILE, NAMES_FILE, PLACE_FILE, *FILES)
"""Files whose owners write them again."""
DIRECTORIES: Final = (PODS_DIR, PKI_DIR, SECCOMP_DIR)
LOST: Final = (*DIRECTORIES, KUBECONFIG)
"""Nobody here knows their contents."""

log = logging.getLogger(__name__)


class Checkpoints(Protocol):
    """The files of the sync loop."""

    def write_again(self) -> None: ...


class Sources(Protocol):
    """The files of the sources."""

    async def keep_files(self, *, anew: bool) -> tuple[Path, ...]: ...


class _Stamp(NamedTuple):
    inode: int
    mtime_ns: int
    size: int


class RememberedFiles:
    """Contents of small files. Its methods block: for a thread, and only one at a time."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._known: dict[Path, tuple[_Stamp, bytes, int]] = {}

    def look(self) -> tuple[Path, ...]:
        """Files that were there, and are not any more: missing, empty, or something else."""
        return tuple(path for path in self._paths if not self._is_there(path) and path in self._known)

    def write(self, paths: Iterable[Path]) -> None:
        """Write these as they were. Raises OSError."""
        for path in paths:
            _, data, mode = self._known[path]
            make_private(path.parent)
            write_atomically(path, data, mode=mode)

    def _is_there(self, path: Path) -> bool:
        """Whether it is a file with content, which is remembered then."""
        try:
            found = os.lstat(path)
        except OSError:
            return False
        if not (stat.S_ISREG(found.st_mode) and found.st_size):
            return False
        stamp = _Stamp(found.st_ino, found.st_mtime_ns, found.st_size)
        if path not in self._known or self._known[path][0] != stamp:
            try:
                self._known[path] = (stamp, read_bounded(path, MAX_BYTES), stat.S_IMODE(found.st_mode))
            except (OSError, UntrustedFile):
                return True  # another moment's matter: it is there
        return True


class StateWatch:
    """Looks again and again; tells each name once until it is back."""

    def __init__(self, settings: Settings, checkpoints: Checkpoints, sources: Sources) -> None:
        self._directory = settings.state_dir
        self._checkpoints = checkpoints
        self._sources = sources
        marks = (settings.state_dir, settings.pod_logs_dir, settings.memory_dir)
        own = (settings.state_dir / name for name in REMEMBERED)
        self._files = RememberedFiles((*own, *(each / OWNER_FILE for each in marks)))
        self._seen: dict[Path, int] = {}
        """Inodes, as they were last."""
        self._told: frozenset[Path] = frozenset()
        self._is_failing = False

    async def look(self) -> str:
        """Write again what has gone away; words about what nobody was told of yet, empty if there is nothing."""
        lost = await asyncio.to_thread(self._look)
        news = lost - self._told
        self._told = lost
        if any(path.name in WRITTEN_ANEW for path in news):
            self._checkpoints.write_again()
        try:
            found = await self._sources.keep_files(anew=any(path.name in WRITTEN_ANEW for path in news))
        except OSError as error:
            self._failed(error)
            found = ()
        return self._words({*news, *found})

    def _look(self) -> frozenset[Path]:
        """All that has gone away. Small files are back already, where the disk takes them."""
        others = [self._directory / name for name in (*WRITTEN_ANEW, *LOST)]
        there = {path: inode for path in others if (inode := _inode(path))}
        gone = {path for path, inode in self._seen.items() if there.get(path, 0) != inode and _is_gone(path, there)}
        self._seen |= there
        missing = self._files.look()
        try:
            self._files.write(missing)
            self._is_failing = False
        except OSError as error:
            self._failed(error)
        return frozenset((*missing, *gone))

    def _failed(self, error: OSError) -> None:
        if not self._is_failing:
            log.error("what went away of %s cannot be written again: %s", self._directory, error.strerror or error)
        self._is_failing = True

    def _words(self, paths: set[Path]) -> str:
        again = self._names(path for path in paths if path.name not in LOST)
        lost = self._names(path for path in paths if path.name in LOST)
        parts = (f"written again: {again}" if again else "", f"lost: {lost}" if lost else "")
        words = "; ".join(filter(None, parts))
        return f"files went away from {safe_line(str(self._directory))}: {words}" if words else ""

    def _names(self, paths: Iterable[Path]) -> str:
        """Below the state directory relative to it."""
        here = self._directory
        names = sorted(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths)
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return safe_line(", ".join(names[:MAX_NAMED])) + more


def _inode(path: Path) -> int:
    """0 when nothing is there."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _is_gone(path: Path, there: Container[Path]) -> bool:
    """Whether a path with another inode was lost: a file that is replaced was not, a directory that is made anew
    was."""
    return path not in there or path.name in DIRECTORIES


async def watch_state(watch: StateWatch, tell: Callable[[EventReason, str], None]) -> None:
    """Look for ever, and tell the node's events."""
    while True:
        if words := await watch.look():
            log.warning("%s", words)
            tell(event_reasons.STATE_LOST, words)
        await asyncio.sleep(PERIOD_S)
