"""Lists and watches: what is in them, in which order, and how they end (apiserver pkg/storage/cacher)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.failures import JsonObject, Refusal
from tests.support.servers.kube_api.options import ListOptions, continue_token
from tests.support.servers.kube_api.resources import ResourceType
from tests.support.servers.kube_api.selectors import Test, field_test, label_test
from tests.support.servers.kube_api.store import Change, Key, Store


@dataclass(frozen=True)
class Scope:
    """Selection of objects."""

    resource: ResourceType
    namespace: str
    options: ListOptions

    def test(self) -> Test:
        """Raises Refusal for a selector that is none."""
        fields = field_test(self.options.fields, self.resource)
        labels = label_test(self.options.labels)
        return lambda found: fields(found) and labels(found)

    def has(self, key: Key) -> bool:
        return key[0] == self.resource.plural and self.namespace in ("", key[1])


def listed(store: Store, scope: Scope) -> JsonObject:
    """The List. Raises Refusal."""
    options, test = scope.options, scope.test()
    revision = _revision_of_list(store, options)
    objects = store.at(revision)
    keys = sorted(key for key, found in objects.items() if scope.has(key) and test(found))
    keys = [key for key in keys if f"{key[1]}/{key[2]}" > options.after]
    page = keys[: options.limit] if options.limit else keys
    metadata: JsonObject = {"resourceVersion": str(revision)}
    if len(page) < len(keys):
        metadata["continue"] = continue_token(revision, f"{page[-1][1]}/{page[-1][2]}")
        if not options.fields and not options.labels:
            metadata["remainingItemCount"] = len(keys) - len(page)
    kinds = {"kind": f"{scope.resource.kind}List", "apiVersion": scope.resource.api_version}
    items = [
        {name: value for name, value in objects[key].items() if name not in ("kind", "apiVersion")} for key in page
    ]
    return kinds | {"metadata": metadata, "items": items}


def _revision_of_list(store: Store, options: ListOptions) -> int:
    if options.at is not None:
        if options.at < store.compacted:
            raise failures.expired_continue()
        return options.at
    asked = options.version or 0
    if asked > store.revision:
        raise failures.too_large_version(asked, store.revision)
    if options.match == "Exact" or (options.limit and asked and not options.match):
        if asked < store.compacted:
            raise failures.expired_list()
        return asked
    return store.revision


class Watch:
    """One open watch: events as they come, until its time is over or somebody ends it."""

    def __init__(self, store: Store, scope: Scope, bookmark_interval_s: float) -> None:
        """Raises Refusal for options that are wrong."""
        self._store = store
        self._scope = scope
        self._test = scope.test()
        self._bookmark_interval_s = bookmark_interval_s
        self._woken = asyncio.Event()
        self._position = store.revision
        self._error: Refusal | None = None
        self._bookmark_asked = False
        options = scope.options
        if options.initial_events and (options.version or 0) > store.revision:
            raise failures.too_large_version(options.version or 0, store.revision)

    def bookmark(self) -> None:
        """Sends one now, if the watch takes them."""
        self._bookmark_asked = True
        self._woken.set()

    def expire(self) -> None:
        """Ends it with 410 within the stream."""
        self._error = failures.expired_watch(self._position, self._store.revision)
        self._woken.set()

    async def events(self) -> AsyncIterator[JsonObject]:
        """Every event; it ends after the last one."""
        forget = self._store.listen(self._woken.set)
        try:
            try:
                initial = list(self._initial())
            except Refusal as refusal:
                yield {"type": "ERROR", "object": refusal.status()}
                return
            for event in initial:
                yield event
            async for event in self._changes():
                yield event
        finally:
            forget()

    def _initial(self) -> Iterator[JsonObject]:
        options, store = self._scope.options, self._store
        if options.initial_events or not options.version:
            self._position = store.revision
            for key, found in sorted(store.at(store.revision).items()):
                if self._scope.has(key) and self._test(found):
                    yield {"type": "ADDED", "object": found}
            if options.initial_events and options.bookmarks:
                yield self._bookmark({"k8s.io/initial-events-end": "true"})
        elif options.version < store.compacted:
            raise failures.expired_watch(options.version, store.compacted)
        else:
            self._position = options.version

    async def _changes(self) -> AsyncIterator[JsonObject]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._scope.options.timeout_s
        next_bookmark = loop.time() + self._bookmark_interval_s
        while True:
            self._woken.clear()
            for change in list(self._store.since(self._position)):
                self._position = change.revision
                if event := self._event(change):
                    yield event
            if self._error is not None:
                yield {"type": "ERROR", "object": self._error.status()}
                return
            now = loop.time()
            if self._scope.options.bookmarks and (self._bookmark_asked or now >= next_bookmark):
                self._bookmark_asked = False
                next_bookmark = now + self._bookmark_interval_s
                yield self._bookmark({})
            if now >= ends:
                return
            await self._wait(min(ends, next_bookmark) - now)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                await self._woken.wait()
        except TimeoutError:
            return

    def _event(self, change: Change) -> JsonObject | None:
        if not self._scope.has(change.key):
            return None
        was = change.before is not None and self._test(change.before)
        is_ = change.type != "DELETED" and self._test(change.object)
        match was, is_:
            case False, True:
                return {"type": "ADDED", "object": change.object}
            case True, True:
                return {"type": "MODIFIED", "object": change.object}
            case True, False:
                return {"type": "DELETED", "object": self._last(change)}
        return None

    def _last(self, change: Change) -> JsonObject:
        """Object as it left the selection, with the revision at which it did."""
        if change.type == "DELETED" or change.before is None:
            return change.object
        metadata = change.before["metadata"] | {"resourceVersion": str(change.revision)}
        return change.before | {"metadata": metadata}

    def _bookmark(self, annotations: dict[str, str]) -> JsonObject:
        metadata: JsonObject = {"resourceVersion": str(self._position), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        resource = self._scope.resource
        found = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": found}


def line(event: JsonObject) -> bytes:
    """An event as it stands in the stream."""
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
