"""File systems, and what directories on them use. Directories are counted rarely and within bounds.

Mirrors the kubelet's volume statistics (pkg/kubelet/server/stats/fs_resource_analyzer.go, volumeStatsAggPeriod). A
directory that takes long is counted so rarely that it costs a hundredth of the time; one with very many files has no
size. Files of a container's other users may lie in directories that are closed to the agent's user: those are counted
inside Podman's namespaces, all at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from ipc.host.clock import monotonic
from workers.fs.disk_usage import used_bytes_and_inodes
from workers.statsapi.values import FileSystem
from workers.userns.unshare import Unshare, UnshareError

PERIOD_S: Final = 60.0
"""A directory is counted anew after so long (volumeStatsAggPeriod), in seconds."""
COST_FACTOR: Final = 100.0
"""... and at the earliest after so many times what it took."""
ROUND_S: Final = 0.1
"""Time for counting in one housekeeping; the rest is counted in the next one. In seconds."""
MAX_FILES: Final = 20_000
"""Most files of a directory that are counted."""
MAX_CLOSED: Final = 500
"""Most directories that are counted inside Podman's namespaces at once."""
CLOSED_DEADLINE_S: Final = 20.0
ANSWER_S: Final = 0.2
"""A file system of the user's is waited for so long, in seconds."""
MAX_HANGING: Final = 16
"""Most threads that wait for file systems which do not answer."""

Usage = tuple[int, int]
"""Bytes and inodes."""


class _Counted(msgspec.Struct, frozen=True):
    usage: Usage | None
    due: float
    """Monotonic seconds at which it is counted again."""


class DiskUsage:
    """Newest counts of directories. For one thread at a time."""

    def __init__(self, unshare: Unshare, now: Callable[[], float] = monotonic) -> None:
        """``now``: monotonic seconds."""
        self._unshare = unshare
        self._now = now
        self._counted: dict[str, _Counted] = {}
        self._closed: set[str] = set()
        """Directories that the agent's user cannot look into."""
        self._closed_due = 0.0

    def count(self, paths: Iterable[str]) -> None:
        """Count those that are due, as many as there is time for; the others are forgotten. Blocks."""
        wanted = dict.fromkeys(paths)
        self._counted = {path: known for path, known in self._counted.items() if path in wanted}
        self._closed &= wanted.keys()
        end = self._now() + ROUND_S
        for path in sorted(wanted, key=self._due):
            if (now := self._now()) >= end or self._due(path) > now:
                break
            if path not in self._closed:
                self._count(path, now)
        self._count_closed()

    def of(self, path: str) -> Usage | None:
        """Newest count; None when it is not known."""
        found = self._counted.get(path)
        return found.usage if found is not None else None

    def _due(self, path: str) -> float:
        found = self._counted.get(path)
        return found.due if found is not None else 0.0

    def _count(self, path: str, began: float) -> None:
        usage: Usage | None = None
        try:
            usage = used_bytes_and_inodes(path, MAX_FILES)
        except PermissionError:
            self._closed.add(path)
        except OSError:
            usage = None  # a disk that fails says nothing about what is on it
        self._note(path, usage, began)

    def _count_closed(self) -> None:
        began = self._now()
        if not self._closed or self._closed_due > began:
            return
        paths = sorted(self._closed)[:MAX_CLOSED]
        found = self._inside(paths)
        for path in paths:
            self._note(path, found.get(path), began)
        self._closed_due = max(self._counted[path].due for path in paths)

    def _inside(self, paths: list[str]) -> dict[str, Usage]:
        steps = [(used_bytes_and_inodes.__name__, {"path": path, "max_files": MAX_FILES}) for path in paths]
        unshare = msgspec.structs.replace(self._unshare, deadline_s=CLOSED_DEADLINE_S)
        with contextlib.suppress(UnshareError):
            results = unshare.run(steps)
            return {path: (int(u[0]), int(u[1])) for path, u in zip(paths, results, strict=True) if u is not None}
        return {}

    def _note(self, path: str, usage: Usage | None, began: float) -> None:
        now = self._now()
        self._counted[path] = _Counted(usage, now + max(PERIOD_S, COST_FACTOR * (now - began)))


def file_system(path: str, time: float) -> FileSystem | None:
    """The file system that a path leads to, used by everything on it; None without the path. May block when the file
    system does."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return FileSystem(
        time=time,
        path=path,
        capacity=found.f_blocks * found.f_frsize,
        available=found.f_bavail * found.f_frsize,
        used=(found.f_blocks - found.f_bfree) * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
        inodes_used=found.f_files - found.f_ffree,
    )


class UserFileSystems:
    """File systems of directories that are the user's, perhaps on a network whose server is gone: each is asked in a
    thread, and while one has not answered it is not asked again. For one thread at a time."""

    def __init__(self, ask: Callable[[str, float], FileSystem | None] = file_system) -> None:
        self._ask = ask
        self._hanging: dict[str, threading.Thread] = {}

    def of(self, path: str, time: float) -> FileSystem | None:
        """Figures as of `file_system`; None too when it does not answer within `ANSWER_S`, or so many hang already."""
        self._hanging = {path: thread for path, thread in self._hanging.items() if thread.is_alive()}
        if path in self._hanging or len(self._hanging) >= MAX_HANGING:
            return None
        found: list[FileSystem | None] = []
        asking = threading.Thread(target=lambda: found.append(self._ask(path, time)), name="statvfs", daemon=True)
        asking.start()
        asking.join(ANSWER_S)
        if not found:
            self._hanging[path] = asking
        return found[0] if found else None


def used_on(fs: FileSystem | None, usage: Usage | None, path: str) -> FileSystem | None:
    """A directory on that file system; None when nothing is known of that."""
    if fs is None:
        return None
    return msgspec.structs.replace(
        fs,
        path=path,
        used=usage[0] if usage is not None else None,
        inodes_used=usage[1] if usage is not None else None,
    )


def volumes_in(root: str, uid: str) -> list[tuple[str, str]]:
    """(plugin, name) of the volumes of a pod below ``pods_dir`` or ``memory_dir``."""
    return [
        (plugin, name)
        for plugin in _names(os.path.join(root, uid, "volumes"))
        for name in _names(os.path.join(root, uid, "volumes", plugin))
    ]


def _names(directory: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(os.listdir(directory))
    return []


def sum_of(usages: Iterable[Usage | None]) -> Usage | None:
    """None when one of them is not known."""
    every = tuple(usages)
    known = [usage for usage in every if usage is not None]
    return (sum(used for used, _ in known), sum(inodes for _, inodes in known)) if len(known) == len(every) else None
