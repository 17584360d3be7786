"""Watches: a stream of lines, each one a meta/v1 WatchEvent, from a position in the store's window onwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import msgspec

from ipc.host.clock import Clock
from ipc.link.messages.api_server import EventChanged, ObjectChanged, PodChanged
from ipc.link.shm.trace import TRACER
from workers.api_server.core.status_errors import failure
from workers.api_server.store.objects import StoredObject, bookmark_line, watch_line
from workers.api_server.store.store import Change, ChangeType, Expired, ObjectStore, Store, Wanted, seen_as

MAX_BATCH_CHANGES: Final = 256
"""Most changes written at once."""
BOOKMARK_PERIOD_S: Final = 1.0
"""How often a client that allows bookmarks hears of a watch on which nothing happens."""
MAX_WATCH_S: Final = 3600
"""Longest life of one watch, in seconds, whatever the client asks; then it resumes or lists again."""

M = TypeVar("M", PodChanged, EventChanged, ObjectChanged)
Write = Callable[[bytes], Awaitable[None]]


class Notifier:
    """Wakes everyone who waits at that moment."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    def subscribe(self) -> asyncio.Event:
        """Will be set by the next ``notify``. Take it before looking at what it announces."""
        return self._next


class WatchRequest(msgspec.Struct, Generic[M], frozen=True):
    """The objects that one client watches."""

    kind: str
    wanted: Wanted[M]
    resource_version: int | None
    """Changes after it; None begins with everything that exists as ADDED."""
    bookmarks: bool
    timeout_s: int
    shown: Callable[[bytes], bytes]
    """From an object's JSON to what of it is told."""


async def stream_watch(
    request: WatchRequest[M], store: Store, objects: ObjectStore[M], changed: Notifier, clock: Clock, write: Write
) -> None:
    """Write events until the time is over or the position has left the window, which is said in an ERROR event."""
    deadline = clock.now().mono + min(request.timeout_s, MAX_WATCH_S)
    position = request.resource_version
    if position is None:
        # No await between the two: the position belongs to exactly this list.
        position, existing = store.resource_version, objects.select(request.wanted)
        await _write_existing(existing, request.shown, write)
    heard_at = clock.now().mono
    while (now := clock.now().mono) < deadline:
        wake = changed.subscribe()
        try:
            changes = objects.changes_after(position, MAX_BATCH_CHANGES)
        except Expired as error:
            await write(watch_line("ERROR", msgspec.json.encode(failure(410, str(error)))))
            return
        position = changes[-1].resource_version if changes else max(position, store.resource_version)
        lines = _lines(changes, request)
        if not lines and request.bookmarks and now - heard_at >= BOOKMARK_PERIOD_S:
            lines = bookmark_line(request.kind, position)
        if lines:
            await write(lines)
            heard_at = now
            _trace_told(changes)
        if not changes:
            await _wait(wake, min(deadline - now, BOOKMARK_PERIOD_S))


async def _write_existing(existing: list[StoredObject[M]], shown: Callable[[bytes], bytes], write: Write) -> None:
    for start in range(0, len(existing), MAX_BATCH_CHANGES):
        batch = existing[start : start + MAX_BATCH_CHANGES]
        await write(b"".join(watch_line(ChangeType.ADDED, shown(found.json)) for found in batch))


def _lines(changes: list[Change[M]], request: WatchRequest[M]) -> bytes:
    return b"".join(
        watch_line(seen, request.shown(change.current.json), change.current.observed_at)
        for change in changes
        if (seen := seen_as(change, request.wanted)) is not None
    )


def _trace_told(changes: list[Change[M]]) -> None:
    for change in changes if TRACER.on else ():
        if change.current.kind is PodChanged:
            TRACER.instant("a watcher is told", change.current.key)


async def _wait(wake: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await wake.wait()
