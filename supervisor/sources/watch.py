"""Follows a manifest directory or file: reads it at once, when something stirs, and every ``fileCheckFrequency``.

Notifications (inotify) only say that it is time to look; the listing is the truth. So a lost notification, a full
inotify queue, a network file system without any, or a link whose target changed elsewhere cost at most one period.

Mirrors pkg/kubelet/config/file.go and file_linux.go. On purpose different: a look that finds changes is repeated until
the files hold still, so that a file that is being written is not taken half; and what was read is handed on only when
it differs from the last time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.text.safe_text import safe_line
from ipc.link.eventloop.backoff import Backoff
from ipc.link.eventloop.tasks import BackgroundTasks
from supervisor.protocol.manifests import ManifestErrorKind, SourceSnapshot
from supervisor.sources.directory import Listing, ManifestReader, changed_files, judged
from supervisor.sources.directory_watch import DirectoryWatch
from supervisor.sources.heavy_files import HeavyFiles
from supervisor.sources.source_place import PlaceRecord

SETTLE_S: Final = 0.2
"""How long a file must hold still before it is read, in seconds. Far above a file system's clock tick."""
MAX_SETTLE_LOOKS: Final = 10
"""After so many looks the files that hold still are read and the others are held."""
RETRIES: Final = Backoff(1.0, 20.0)
"""Between attempts to watch (pkg/kubelet/config/file_linux.go, retryPeriod)."""
TARGET_CHECK_S: Final = 20.0
"""How often an idle watch looks whether its directory is still the same one, in seconds; its parent is watched for that
too."""

log = logging.getLogger(__name__)

Target = tuple[str, int, int]
"""A watched directory: path, device, inode."""


async def watch_manifests(
    reader: ManifestReader,
    period_s: float,
    place_record: PlaceRecord | None = None,
    stirred: asyncio.Event | None = None,
) -> AsyncGenerator[SourceSnapshot]:
    """A snapshot now, and one whenever what is stated or what is wrong changes. Ends only by being closed.

    ``place_record`` judges whether what is found is still the source. ``stirred`` may be set for another look.

    All file access happens in threads. A directory that goes away gives a snapshot that is not complete; when it comes
    back it is read and watched again. Files that do not hold still are looked at less and less often.
    """
    stirred = stirred or asyncio.Event()
    listing, last, pause_s = Listing(), None, SETTLE_S
    tasks = BackgroundTasks()
    heavy_files = HeavyFiles(reader, stirred.set)
    tasks.spawn(heavy_files.run(), name="decoding heavy manifests")
    tasks.spawn(_notify(reader.path, stirred), name="watching the manifests")
    try:
        while True:
            stirred.clear()
            heavy_files.hand_over()
            listing, settled, changing = await _settled(reader, listing, place_record)
            snapshot = await asyncio.to_thread(reader.read, settled, changing)
            await heavy_files.ask()
            if heavy_files.hand_over():
                snapshot = await asyncio.to_thread(reader.read, settled, changing)
            if reader.has_more:
                stirred.set()
            if snapshot != last:
                last = snapshot
                yield snapshot
            is_changing = any(error.kind is ManifestErrorKind.CHANGING for error in snapshot.errors)
            pause_s = min(2 * pause_s, period_s) if is_changing else SETTLE_S
            if is_changing:
                await asyncio.sleep(SETTLE_S)
            # Not wait_for(): in Python 3.11 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s - SETTLE_S if is_changing else period_s):
                    await stirred.wait()
    finally:
        await tasks.close()


async def _settled(
    reader: ManifestReader, last: Listing, place_record: PlaceRecord | None
) -> tuple[Listing, Listing, frozenset[str]]:
    """Look until two looks agree. The last look, what is to be read, and the files in it that do not come to rest in
    time.

    ``last`` must be SETTLE_S old unless nothing was changing then.
    """
    before, now = last, await asyncio.to_thread(reader.look)
    for _ in range(MAX_SETTLE_LOOKS):
        if not changed_files(before, now) and before.skipped == now.skipped and before.place in (None, now.place):
            break
        await asyncio.sleep(SETTLE_S)
        before, now = now, await asyncio.to_thread(reader.look)
    # A temporary file, which becomes a manifest by its renaming, is gone by the second look.
    settled = msgspec.structs.replace(now, skipped=before.skipped & now.skipped)
    changing = changed_files(before, now)
    if place_record is not None:
        settled = await asyncio.to_thread(judged, settled, place_record, changing)
        changing = changing if settled.place else frozenset()
    return now, settled, changing


async def _notify(path: Path, stirred: asyncio.Event) -> None:
    """Set ``stirred`` whenever something happens near ``path``, for ever."""
    failures, reported = 0, ""
    while True:
        targets = await asyncio.to_thread(watch_targets, path)
        try:
            if targets:
                await _notify_while_same(path, targets, stirred)
                failures, reported = 0, ""
                continue
        except OSError as error:
            stirred.set()
            if (why := safe_line(str(error.strerror))) != reported:
                reported = why
                log.warning("cannot watch %s, reading it periodically instead: %s", safe_line(str(path)), reported)
        failures += 1
        await asyncio.sleep(RETRIES.pause_s(failures))


async def _notify_while_same(path: Path, targets: tuple[Target, ...], stirred: asyncio.Event) -> None:
    """Watch until one of the directories is another one than it was. Raises OSError."""
    heard = asyncio.Event()

    def hear_of(directory: str) -> None:
        heard.set()
        if directory == targets[0][0]:
            stirred.set()

    with contextlib.ExitStack() as watches:
        for directory, *_ in targets:
            watch = DirectoryWatch(directory, functools.partial(hear_of, directory))
            watches.enter_context(contextlib.closing(watch))
        # A change between the last look and the start of the watch is found by looking once more.
        stirred.set()
        while await asyncio.to_thread(watch_targets, path) == targets:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TARGET_CHECK_S):
                    await heard.wait()
            heard.clear()
    stirred.set()


def watch_targets(path: Path) -> tuple[Target, ...]:
    """The directories to watch for ``path``: itself when it is one, then its parent, which sees it come and go.

    The first one is that which is read: of a single file the parent.
    """
    found = []
    for candidate in (path, path.parent):
        with contextlib.suppress(OSError):
            status = candidate.stat()
            if candidate.is_dir():
                found.append((str(candidate), status.st_dev, status.st_ino))
    return tuple(found)
