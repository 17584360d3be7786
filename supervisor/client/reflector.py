"""A client's own copy of objects, kept by list and watch (client-go tools/cache, reflector.go).

Survives the API server's restarts: it resumes where it stopped, or lists again and tells what changed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from ipc.host import clock
from supervisor.client.errors import ConnectionLost, RequestFailed
from supervisor.client.http import AgentClient, Query, WatchEvent

RETRY_PERIOD_S: Final = 0.2
"""Between two attempts to watch."""
_EXPIRED: Final = 410
_LATER: Final = (429, 503)
"""Refusals that will not last."""

Object = dict[str, Any]


class Reflector:
    """Objects of one kind under one selection. ``objects`` is the present, by uid or name."""

    def __init__(self, client: AgentClient, path: str, query: Query | None = None) -> None:
        self._client = client
        self._path = path
        self._query = query or {}
        self._position = ""
        self.objects: dict[str, Object] = {}

    def list(self) -> list[WatchEvent]:
        """Look at everything afresh; what is different from before. Raises AgentError."""
        found = self._client.get(self._path, self._query)
        self._position = found["metadata"]["resourceVersion"]
        before, self.objects = self.objects, {_key(item): item for item in found["items"]}
        gone = [WatchEvent("DELETED", item) for key, item in before.items() if key not in self.objects]
        new = [
            WatchEvent("MODIFIED" if key in before else "ADDED", item)
            for key, item in self.objects.items()
            if key not in before or not _same(item, before[key])
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
                for event in self._client.watch(self._path, {**self._query, "resourceVersion": self._position}):
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

    def _note(self, event: WatchEvent) -> None:
        self._position = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            self.objects.pop(_key(event.object), None)
        elif event.type != "BOOKMARK":
            self.objects[_key(event.object)] = event.object


def _key(obj: Object) -> str:
    return str(obj["metadata"].get("uid") or obj["metadata"]["name"])


def _same(one: Object, other: Object) -> bool:
    """Equal apart from the version, which a new life of the API server counts anew."""
    return _without_version(one) == _without_version(other)


def _without_version(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}
