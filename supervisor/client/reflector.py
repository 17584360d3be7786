"""A client's own copy of objects, kept by list and watch (client-go tools/cache, reflector.go).

It survives restarts of the API server: it resumes where it stopped, or lists again and reports what changed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ipc.host import clock
from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.resources.resource import PASSING
from supervisor.client.errors import ConnectionLost, RequestFailed
from supervisor.client.http import AgentClient, Query, WatchEvent
from supervisor.client.tables import CELLS, TABLE, columns_in, objects_in

RETRY_PERIOD_S: Final = 0.2
"""Between two attempts to watch."""
_EXPIRED: Final = 410
_LATER: Final = (429, 503)
"""Refusals that will not last."""


class Reflector:
    """Objects of one kind under one selection. ``objects`` is the present, by uid or name."""

    def __init__(self, client: AgentClient, path: str, query: Query | None = None, *, as_table: bool = False) -> None:
        """``as_table``: every object has its cells beside its fields."""
        self._client = client
        self._path = path
        self._query = query or {}
        self._accept = TABLE if as_table else ""
        self._position = ""
        self.columns: Sequence[Json] = ()
        """Definitions of the cells, once something was listed."""
        self.objects: dict[str, JsonObject] = {}

    def list(self) -> list[WatchEvent]:
        """Look at everything afresh; what is different from before. Raises AgentError."""
        found = self._client.get(self._path, self._query, self._accept)
        self._position, self.columns = found["metadata"]["resourceVersion"], columns_in(found)
        before, self.objects = self.objects, {_key(item): item for item in objects_in(found)}
        gone = [WatchEvent("DELETED", item) for key, item in before.items() if key not in self.objects]
        new = [
            WatchEvent("MODIFIED" if key in before else "ADDED", item)
            for key, item in self.objects.items()
            if key not in before or not self._is_same(item, before[key])
        ]
        return gone + new

    def events(self) -> Iterator[WatchEvent]:
        """Events after ``list``, for ever; about once a second a BOOKMARK when nothing happens.

        Raises AgentUnreachable when the agent itself is gone, RequestFailed when it refuses.
        """
        expired = False
        while True:
            try:
                if expired:
                    yield from self.list()
                    expired = False
                query = {**self._query, "resourceVersion": self._position}
                for reported in self._client.watch(self._path, query, self._accept):
                    event = _unwrapped(reported)
                    self._note(event)
                    yield event
            except ConnectionLost:
                time.sleep(RETRY_PERIOD_S)
            except RequestFailed as error:
                if error.code not in (_EXPIRED, *_LATER):
                    raise
                expired = expired or error.code == _EXPIRED
                time.sleep(RETRY_PERIOD_S)

    def wait_until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """Follow what happens until that holds of ``objects``; False when the time is over before.

        The time is looked at about once a second. Raises as ``events`` does.
        """
        deadline = clock.monotonic() + timeout_s
        ticks = self.events()
        while not reached():
            if clock.monotonic() >= deadline:
                return False
            next(ticks)
        return True

    def _is_same(self, one: JsonObject, other: JsonObject) -> bool:
        """Whether they are equal apart from the version, which a new life of the API server counts anew, and from how
        long ago things were."""
        return self._lasting(one) == self._lasting(other)

    def _lasting(self, obj: JsonObject) -> JsonObject:
        metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        if CELLS not in obj:
            return {**obj, "metadata": metadata}
        cells = [
            str(cell).partition(" (")[0]
            for cell, column in zip(obj[CELLS], self.columns, strict=False)
            if column["name"] not in PASSING
        ]
        return {**obj, "metadata": metadata, CELLS: cells}

    def _note(self, event: WatchEvent) -> None:
        self._position = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            self.objects.pop(_key(event.object), None)
        elif event.type != "BOOKMARK":
            self.objects[_key(event.object)] = event.object


def _key(obj: JsonObject) -> str:
    return str(obj["metadata"].get("uid") or obj["metadata"]["name"])


def _unwrapped(event: WatchEvent) -> WatchEvent:
    """Take the one row of a Table."""
    if event.object.get("kind") != "Table":
        return event
    (row,) = objects_in(event.object)
    return WatchEvent(event.type, row, event.observed_at)
