"""Watch over the agent's own files: what goes away while the agent runs is written again, and told once.

Somebody empties the state directory, or removes it. Pods run on, but none starts any more: Podman misses the profile
that its settings name. And the next start would find nothing of what this one knew.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ipc.host.text.safe_text import safe_line
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from supervisor.config.resolution.child_settings import IMAGE_RECORDS_FILE, PULLED_IMAGES_DIR, SECCOMP_DIR
from supervisor.config.resolution.node_files import BOOTSTRAP_KUBECONFIG, KUBECONFIG, PKI_DIR
from supervisor.config.seccomp_profiles import SANDBOX_PROFILE
from supervisor.config.settings import PODS_DIR, Settings
from supervisor.loop_checkpoints import FILES
from supervisor.podman_store import FILE as STORE_FILE
from supervisor.processes.podman_service import CONF_FILE, CONMON_FILE
from supervisor.record.node_events import BOOT_FILE
from supervisor.sources.manager import CHECKPOINT_FILE, NAMES_FILE
from supervisor.sources.secret_places import KEY_FILE
from supervisor.sources.source_place import FILE as PLACE_FILE
from supervisor.state import label_key_file, shutdown_state
from supervisor.state.directory_owner import OWNER_FILE
from supervisor.state.remembered_files import RememberedDirectories, RememberedFiles

PERIOD_S: Final = 2.0
"""Seconds between two looks."""
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
    IMAGE_RECORDS_FILE,
    STORE_FILE,
)
"""Small files that are written once: their contents are remembered."""
WRITTEN_ANEW: Final = (CHECKPOINT_FILE, NAMES_FILE, PLACE_FILE, *FILES)
"""Files whose owners write them again."""
KUBECONFIGS: Final = (KUBECONFIG, BOOTSTRAP_KUBECONFIG)
"""Somebody may remove one, as `rootlet leave` does."""
DIRECTORIES: Final = (PKI_DIR, SECCOMP_DIR, PULLED_IMAGES_DIR)
"""Directories of certificates, profiles and records of pulls: small files likewise."""

log = logging.getLogger(__name__)


class Checkpoints(Protocol):
    """The files of the sync loop."""

    def write_again(self) -> None: ...


class Sources(Protocol):
    """The files of the sources."""

    async def keep_files(self, *, anew: bool) -> tuple[Path, ...]: ...


class _Gone(NamedTuple):
    """Paths that have gone away."""

    again: frozenset[Path] = frozenset()
    """Paths that are back, or that their owners write again."""
    lost: frozenset[Path] = frozenset()


class StateWatch:
    """Looks again and again; tells each name once until it is back."""

    def __init__(self, settings: Settings, checkpoints: Checkpoints, sources: Sources) -> None:
        self._directory = settings.state_dir
        self._checkpoints = checkpoints
        self._sources = sources
        marks = (settings.state_dir, settings.pod_logs_dir, settings.memory_dir)
        self._mark = settings.state_dir / OWNER_FILE
        """The file that goes when the directory is emptied."""
        self._own = [settings.state_dir / name for name in REMEMBERED] + [each / OWNER_FILE for each in marks]
        self._files = RememberedFiles()
        self._anew = [settings.state_dir / name for name in WRITTEN_ANEW]
        directories = {settings.state_dir / name: () for name in DIRECTORIES}
        self._directories = RememberedDirectories({settings.state_dir: KUBECONFIGS, **directories})
        self._seen: dict[Path, int] = {}
        """Inodes, as they were last."""
        self._reported: frozenset[Path] = frozenset()
        self._is_failing = False

    async def look(self) -> str:
        """Write again what has gone away; words about what nobody was told of yet, empty if there is nothing."""
        gone = await asyncio.to_thread(self._look)
        news, lost = gone.again - self._reported, gone.lost - self._reported
        self._reported = gone.again | gone.lost
        if any(path.name in WRITTEN_ANEW for path in news):
            self._checkpoints.write_again()
        try:
            found = await self._sources.keep_files(anew=any(path.name in WRITTEN_ANEW for path in news))
        except OSError as error:
            self._failed(error)
            found = ()
        return self._words({*news, *found}, lost)

    def _look(self) -> _Gone:
        """All that has gone away. Small files are back already, where the disk takes them."""
        pods = self._directory / PODS_DIR
        there = {path: inode for path in (pods, *self._anew) if (inode := _inode(path))}
        gone = {path for path, inode in self._seen.items() if there.get(path, 0) != inode and _is_gone(path, there)}
        self._seen |= there
        missing = self._files.look(self._own)
        went = self._directories.look(all_went=self._mark in missing)
        lost = gone & {pods}
        try:
            lost.update(self._directories.write(went))
            self._files.write(missing)  # last: the mark says what has gone
            self._is_failing = False
        except OSError as error:
            self._failed(error)
        return _Gone(again=frozenset({*missing, *went, *gone} - lost), lost=frozenset(lost))

    def _failed(self, error: OSError) -> None:
        if not self._is_failing:
            log.error("what went away of %s cannot be written again: %s", self._directory, error.strerror or error)
        self._is_failing = True

    def _words(self, back: Iterable[Path], gone: Iterable[Path]) -> str:
        again, lost = self._names(back), self._names(gone)
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
    return path not in there or path.name == PODS_DIR


async def watch_state(watch: StateWatch, tell: Callable[[EventReason, str], None]) -> None:
    """Look for ever, and tell the node's events."""
    while True:
        if words := await watch.look():
            log.warning("%s", words)
            tell(event_reasons.STATE_LOST, words)
        await asyncio.sleep(PERIOD_S)
