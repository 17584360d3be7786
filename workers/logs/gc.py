"""Directories of pods that are gone: logs, and what else belongs to a pod (evictPodLogsDirectories,
pkg/kubelet/kuberuntime/kuberuntime_gc.go).

A pod that goes while the agent runs takes its directories along (`workers.kuberuntime.sync_terminating`). What is found
here is of pods that went while no agent ran, or whose directories could not be removed then.

Only what certainly is a pod's goes: a directory of the right name with nothing in it but what we put there, of a pod
that is neither wanted nor in the runtime, and untouched since the master made its list. So a pod that is being made at
this moment is safe: the master tells this process of it before any worker makes a directory for it, and what was made
since is younger than the list. Symbolic links are neither followed nor removed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.node_worker import CollectLogs, LogsCollected
from workers.logs import layout
from workers.userns.remove import remove_below
from workers.userns.unshare import DEFAULT, Unshare

TIMESTAMP_SLACK_S: Final = 1.0
"""File systems are behind the clock by a tick."""
MAX_REPORTED_FAILURES: Final = 10
"""Most failures of one round that become events."""
MAX_REPORTED: Final = 1_000
"""Most paths of one answer."""

_CONTAINER_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MONITOR_PID_FILE: Final = re.compile(r"infra_\d+\.pid")

log = logging.getLogger(__name__)


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one collection."""

    removed: tuple[str, ...]
    """Paths."""
    failures: tuple[str, ...]
    """One sentence each."""


class LogGarbageCollector:
    """Looks when the master asks for it, in a thread, once at a time. Of requests without a number the newest
    counts."""

    def __init__(
        self,
        pod_logs_dir: str,
        pods_dirs: Sequence[str],
        node_name: str,
        is_tracked: Callable[[str], bool],
        report: Callable[[EventReport | LogsCollected], Awaitable[None]],
        unshare: Unshare = DEFAULT,
    ) -> None:
        self._unshare = unshare
        self._pod_logs_dir = pod_logs_dir
        self._pods_dirs = pods_dirs
        self._node_name = node_name
        self._is_tracked = is_tracked
        self._report = report
        self._requests: list[CollectLogs] = []
        self._wake = asyncio.Event()
        self._reported: frozenset[str] = frozenset()
        """Failures of the last collection."""

    def ask(self, request: CollectLogs) -> None:
        self._requests = [*(other for other in self._requests if other.number), request]
        self._wake.set()

    async def collect(self) -> None:
        """Answer requests for a collection of logs, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            requests, self._requests = self._requests, []
            for request in requests:
                await self._answer(request, await self._look(request))

    async def _answer(self, request: CollectLogs, found: Collected) -> None:
        if not request.dry_run:
            await self._tell(found)
        if request.number:
            number, told = request.number, MAX_REPORTED
            await self._report(
                LogsCollected(
                    number=number, paths=found.removed[:told], failures=found.failures[:MAX_REPORTED_FAILURES]
                )
            )

    async def _look(self, request: CollectLogs) -> Collected:
        known = frozenset(request.uids)

        def is_kept(uid: str) -> bool:
            return uid in known or self._is_tracked(uid)

        return await asyncio.to_thread(
            collect,
            self._pod_logs_dir,
            self._pods_dirs,
            is_kept,
            request.listed_at,
            self._unshare,
            dry_run=request.dry_run,
        )

    async def _tell(self, found: Collected) -> None:
        """Log a failure that repeats once."""
        for path in found.removed:
            log.info("removed %s: its pod is gone", path)
        news = [failure for failure in found.failures if failure not in self._reported]
        self._reported = frozenset(found.failures)
        for failure in news:
            log.warning("%s", failure)
        for failure in news[:MAX_REPORTED_FAILURES]:
            await self._report(self._event(failure))

    def _event(self, message: str) -> EventReport:
        return node_event(self._node_name, event_reasons.CONTAINER_GC_FAILED, message)


def collect(
    pod_logs_dir: str,
    pods_dirs: Sequence[str],
    is_kept: Callable[[str], bool],
    listed_at: float,
    unshare: Unshare = DEFAULT,
    *,
    dry_run: bool = False,
) -> Collected:
    """Remove what is left of pods that are not kept, or only find it. Blocks: for a thread.

    Of ``pods_dirs`` (on the disk, in memory) one that is empty stands for none.
    ``is_kept`` is asked with a pod's UID right before its directory would go; ``listed_at`` in epoch seconds.
    """
    places = (_Place(pod_logs_dir, layout.uid_of, _is_log_directory), *(_Place(each) for each in pods_dirs))
    found = [_collect_in(place, is_kept, listed_at, unshare, dry_run) for place in places if place.root]
    return Collected(
        removed=tuple(path for one in found for path in one.removed),
        failures=tuple(failure for one in found for failure in one.failures),
    )


def _is_directory(path: Path) -> bool:
    """Whether the path is a directory itself, not behind a link. Raises OSError."""
    return stat.S_ISDIR(path.lstat().st_mode)


class _Place(msgspec.Struct, frozen=True):
    """Where directories of pods lie."""

    root: str
    uid_of: Callable[[str], str] = str
    """UID in a directory's name; empty for another name."""
    is_pods: Callable[[Path], bool] = _is_directory
    """Whether a directory of such a name is a pod's in every part; raises OSError. Nobody else puts anything beside
    those that have the UID alone as their name, so what is in them does not matter."""


def _collect_in(
    place: _Place,
    is_kept: Callable[[str], bool],
    listed_at: float,
    unshare: Unshare,
    dry_run: bool,
) -> Collected:
    """Nothing but its name is looked at of what is kept, which is all of it on most days."""
    removed, failures = [], []
    root = Path(place.root)
    try:
        gone = sorted(name for name in os.listdir(root) if (uid := place.uid_of(name)) and not is_kept(uid))
    except FileNotFoundError:
        return Collected(removed=(), failures=())
    except OSError as error:
        return Collected(removed=(), failures=(f"cannot look for what is left of pods in {root}: {error.strerror}",))
    for directory in map(root.joinpath, gone):
        try:
            is_gone = place.is_pods(directory) and _changed_at(directory) < listed_at - TIMESTAMP_SLACK_S
            if is_gone and not is_kept(place.uid_of(directory.name)):
                stuck = [] if dry_run else remove_below(str(root), directory.name, unshare=unshare)
                failures += [f"cannot remove {directory}, whose pod is gone: {one}" for one in stuck]
                removed += [] if stuck else [str(directory)]
        except FileNotFoundError:
            continue  # somebody was quicker
        except OSError as error:
            failures.append(f"cannot remove {directory}, whose pod is gone: {error.strerror}")
        except Exception as error:  # of this directory, and of no other
            note_failure("looking for what is left of pods", error)
            failures.append(f"cannot remove {directory}, whose pod is gone: unexpected {type(error).__name__}")
    return Collected(removed=tuple(removed), failures=tuple(failures))


def _is_log_directory(entry: Path) -> bool:
    return _is_directory(entry) and all(map(_is_ours, entry.iterdir()))


def _is_ours(entry: Path) -> bool:
    """Part of a pod's log directory: a container's, or a file for the monitor of an infra container."""
    if not _is_directory(entry):
        return _MONITOR_PID_FILE.fullmatch(entry.name) is not None
    is_container = _CONTAINER_NAME.fullmatch(entry.name) is not None
    return is_container and all(layout.attempt_of(file.name) is not None for file in entry.iterdir())


def _changed_at(directory: Path) -> float:
    """When something was last made or removed in it or right below, in epoch seconds. Raises OSError."""
    below = (entry for entry in directory.iterdir() if _is_directory(entry))
    return max(entry.lstat().st_ctime for entry in (directory, *below))
