"""The watch of the v1 Node, which is put together when somebody asks: as long as somebody watches, now and then.

There is one Node, so a watch needs no window of changes: whoever comes with another resourceVersion than the present
one is told what is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.nodestatus.node import Node
from workers.api_server.store.objects import bookmark_line, watch_line
from workers.api_server.store.store import ChangeType
from workers.api_server.store.watch import BOOKMARK_PERIOD_S, MAX_WATCH_S, Write

REFRESH_S: Final = 10.0
"""A watched Node is put together so often, however many watch it, in seconds (nodeStatusUpdateFrequency)."""


class NodeVersions:
    """Numbers the Node's states: another one for each change, heartbeats of conditions left out. Numbers rise over a
    restart of this process too, by the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest: Node | None = None
        self._number = 0

    def numbered(self, node: Node) -> Node:
        """The Node with its resourceVersion."""
        lasting = without_heartbeats(node)
        if lasting != self._newest:
            self._newest = lasting
            self._number = max(self._number + 1, int(self._clock.now().wall * 1000))
        metadata = msgspec.structs.replace(node.metadata, resource_version=str(self._number))
        return msgspec.structs.replace(node, metadata=metadata)


class NodeWatches:
    """The Node for all who watch it."""

    def __init__(self, make: Callable[[], Awaitable[Node]], is_ready: Callable[[], bool], clock: Clock) -> None:
        """``make`` puts the Node together. When ``is_ready`` changes that is done at once."""
        self._make = make
        self._is_ready = is_ready
        self._clock = clock
        self._making = asyncio.Lock()
        self._current: Node | None = None
        self._made_for = False
        self._made_at = 0.0

    async def stream(
        self,
        write: Write,
        *,
        is_wanted: Callable[[Node], bool],
        shown: Callable[[bytes], bytes],
        seen: str,
        bookmarks: bool,
        timeout_s: int,
    ) -> None:
        """Write an event for each change after the version ``seen``; empty begins with what there is."""
        deadline = self._clock.now().mono + min(timeout_s, MAX_WATCH_S)
        while self._clock.now().mono < deadline:
            node = await self._node()
            version = node.metadata.resource_version
            if version != seen and is_wanted(node):
                change = ChangeType.MODIFIED if seen else ChangeType.ADDED
                await write(watch_line(change, shown(msgspec.json.encode(node))))
                seen = version
            elif bookmarks:
                await write(bookmark_line("Node", int(version)))
            await asyncio.sleep(BOOKMARK_PERIOD_S)

    async def _node(self) -> Node:
        async with self._making:
            now, ready = self._clock.now().mono, self._is_ready()
            if self._current is None or ready is not self._made_for or now - self._made_at >= REFRESH_S:
                self._current = await self._make()
                self._made_at, self._made_for = now, ready
            return self._current


def without_heartbeats(node: Node) -> Node:
    """The part of a Node that does not change by itself."""
    conditions = tuple(msgspec.structs.replace(each, last_heartbeat_time="") for each in node.status.conditions)
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=conditions))
