"""Decisions of a reflector: the next request, the pause before it, and the change that each answer means.

client-go 1.36, tools/cache/reflector.go: a streaming list (``sendInitialEvents``), or a list of pages where the server
refuses that; then watches from the newest resourceVersion; all anew when the server has forgotten that version or has
never known it. Different on purpose: a version that falls on a watch means that the server's store was restored, and
everything is listed anew, where client-go would wait for the old version to come.

Pure: times in seconds of one monotonic clock, chance is given.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.link.eventloop.backoff import Backoff
from workers.kubeclient.errors import INTERNAL_ERROR, TOO_MANY_REQUESTS, ApiError, ClusterError, Unreachable, api_error
from workers.kubeclient.protocol import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, UNREADABLE, WatchEvent

FAILURES: Final = Backoff(0.8, 30.0)
PAUSE_RESET_S: Final = 120.0
"""Before the next try, with a jitter of up to as much again; the shortest pause after so many seconds without a failure
(NewExponentialBackoffManager(800ms, 30s, 2m, 2.0, 1.0))."""
MAX_WANTED_PAUSE_S: Final = 60.0
"""Longest pause that a server gets by its Retry-After, in seconds."""
MIN_WATCH_S: Final = 300.0
"""A watch lasts between this and twice this (minWatchTimeout)."""
SHORT_SIGHTED_S: Final = 30.0
"""A watch after something that cannot be read lasts between this and twice this: the list after it may have it."""
MAX_UNREAD: Final = 100
"""Most events in a row that may be unreadable: after more it is no watch of ours."""
PAGE_SIZE: Final = 500
SHORT_WATCH_S: Final = 1.0
"""A watch that ended within this without any event has failed (VeryShortWatchError)."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
TOO_LARGE_VERSION: Final = "ResourceVersionTooLarge"
_OLD_WORDS: Final = "Too large resource version"

Key = tuple[str, str]
"""Namespace and name."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an object that a reflector looks at."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: list[msgspec.Raw] | None = None


_OBJECT: Final = msgspec.json.Decoder(_Object)
_LIST: Final = msgspec.json.Decoder(_List)


class RequestKind(enum.Enum):
    """Kinds of request."""

    LIST = "list"
    STREAMING_LIST = "streaming list"
    WATCH = "watch"


class NextRequest(msgspec.Struct, frozen=True):
    """The next request: a list, or a watch of either kind."""

    kind: RequestKind
    query: Mapping[str, str]
    pause_s: float
    """Seconds to wait before it."""


class Replaced(msgspec.Struct, frozen=True):
    """All objects there are."""

    objects: Sequence[bytes]
    is_whole: bool = True
    """Whether everything that the server has sent could be read."""


class Changed(msgspec.Struct, frozen=True):
    """One object was added or changed."""

    object: bytes


class Deleted(msgspec.Struct, frozen=True):
    """One object was deleted; its last state."""

    object: bytes


class LeftOut(msgspec.Struct, frozen=True):
    """The event cannot be read: everything is listed anew when the watch ends, which is soon."""

    words: str


Delta = Replaced | Changed | Deleted | LeftOut


class FailurePauses:
    """Pauses between failures."""

    def __init__(self, chance: Callable[[], float]) -> None:
        """``chance``: numbers from 0 to 1."""
        self._chance = chance
        self._failures = 0
        self._failed_at = float("-inf")

    def pause_s(self, now: float) -> float:
        """After a failure at ``now``."""
        if now - self._failed_at > PAUSE_RESET_S:
            self._failures = 0
        self._failed_at = now
        self._failures += 1
        return FAILURES.pause_s(self._failures) * (1.0 + self._chance())


class ReflectorState:
    """One collection's. Ask `next_request`; then say `listed`, or `received` for each event, and how it ended:
    `failed` when there was no answer or a refusal, `ended` when the server has ended the watch."""

    def __init__(
        self, *, field_selector: str = "", label_selector: str = "", chance: Callable[[], float], timeout: bool = True
    ) -> None:
        """``chance``: numbers from 0 to 1. ``timeout``: whether watches say ``timeout=`` besides, as the kubelet's
        informers do, but for that of its pods."""
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._chance = chance
        self._says_timeout = timeout
        self._backoff = FailurePauses(chance)
        self._pause_s = 0.0
        self._kind = RequestKind.STREAMING_LIST
        self._version = ""
        self._version_is_unknown = False
        """Whether the server does not know our version (IsLastSyncResourceVersionUnavailable)."""
        self._initial: dict[Key, bytes] = {}
        self._pages: list[bytes] = []
        self._continue = ""
        self._full_list = False
        self._events = 0
        self._unread_in_a_row = 0
        self._has_left_out = False
        self._began_at = 0.0
        self.is_synced = False
        """Whether the copy was complete once."""
        self.has_fallen = False
        """Whether the newest list is of a lower version than was seen before: the server's store was restored."""

    @property
    def version(self) -> str:
        """The newest resourceVersion that was seen."""
        return self._version

    @property
    def falls_back(self) -> bool:
        """Whether a list comes next: the server has refused to stream one, as those without progress of etcd do."""
        return self._kind is RequestKind.LIST

    def next_request(self, now: float) -> NextRequest:
        """The next request; its answer is expected to begin after the pause."""
        pause_s, self._pause_s = self._pause_s, 0.0
        self._events = 0
        self._began_at = now + pause_s
        if self._kind is not RequestKind.WATCH and not self._continue:
            self._has_left_out = False
        if self._kind is RequestKind.LIST:
            return NextRequest(self._kind, self._list_query(), pause_s)
        if self._kind is RequestKind.STREAMING_LIST:
            self._initial = {}
        return NextRequest(self._kind, self._watch_query(), pause_s)

    def listed(self, body: bytes) -> Replaced | None:
        """An answer to a list; None when there are more pages. Raises Unreachable: it is no list."""
        try:
            page = _LIST.decode(body)
        except UNDECODABLE:
            raise Unreachable("the answer is no list") from None
        self._pages += (bytes(item) for item in page.items or ())
        self._continue = page.metadata.continue_
        if self._continue:
            return None
        objects, self._pages = self._pages, []
        self._full_list = False
        self._synced(page.metadata.resource_version)
        return Replaced(objects)

    def received(self, event: WatchEvent) -> Delta | None:
        """Take an event of a watch; the change it means. Raises ApiError for an ERROR event, and when versions fall;
        Unreachable where too many in a row cannot be read."""
        if event.type == ERROR:
            raise api_error(0, event.object)
        if event.type == UNREADABLE:
            return self._unread("a watch has a line that is no event")
        if event.type not in (ADDED, MODIFIED, DELETED, BOOKMARK):
            return self._unread(f"a watch has an event of type {event.type[:32]!r}")
        try:
            metadata = _OBJECT.decode(event.object).metadata
        except UNDECODABLE:
            return self._unread("a watch has an event without an object")
        self._events += 1
        self._unread_in_a_row = 0
        if self._kind is RequestKind.STREAMING_LIST:
            return self._received_initially(event, metadata)
        if _falls(self._version, metadata.resource_version):
            self._version_is_unknown = True
            raise ApiError(410, "Expired", "the server's resource versions have fallen")
        self._version = metadata.resource_version or self._version
        if event.type == BOOKMARK:
            return None
        return Deleted(event.object) if event.type == DELETED else Changed(event.object)

    def left_out(self) -> None:
        """An object of the list or watch cannot be read: what it is now, or whether it is, the next list may say."""
        self._has_left_out = True

    def ended(self, now: float) -> None:
        """The server has ended the watch, as it does after ``timeoutSeconds``."""
        if self._has_left_out and self._kind is RequestKind.WATCH:
            self._anew(now)
        elif self._kind is RequestKind.STREAMING_LIST:
            self._initial = {}
            self._later(now)
        elif not self._events and now - self._began_at < SHORT_WATCH_S:
            self._anew(now)

    def restored(self, now: float) -> None:
        """The server's store is an older one than the one we know: all of it is listed, of whatever version."""
        self._version, self._version_is_unknown = "", True
        self._initial, self._pages, self._continue = {}, [], ""
        self._anew(now)

    def failed(self, error: ClusterError, now: float) -> None:
        """The request was refused, the connection did not come about or broke, or an ERROR event came."""
        if self._kind is RequestKind.WATCH:
            self._watch_failed(error, now)
        elif self._kind is RequestKind.STREAMING_LIST:
            self._streaming_list_failed(error, now)
        else:
            self._list_failed(error, now)

    # --------------------------------------------------------------------------------------------------------------

    def _unread(self, words: str) -> LeftOut:
        self._unread_in_a_row += 1
        if self._unread_in_a_row > MAX_UNREAD:
            raise Unreachable(words)
        self.left_out()
        return LeftOut(words)

    def _received_initially(self, event: WatchEvent, metadata: Metadata) -> Replaced | None:
        """Events before the bookmark that says that these were all (handleAnyWatch of a watchList)."""
        key = (metadata.namespace, metadata.name)
        if event.type == DELETED:
            self._initial.pop(key, None)
        elif event.type != BOOKMARK:
            self._initial[key] = event.object
        elif (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true":
            objects, self._initial = list(self._initial.values()), {}
            self._synced(metadata.resource_version)
            return Replaced(objects, is_whole=not self._has_left_out)
        return None

    def _synced(self, version: str) -> None:
        self.has_fallen = _falls(self._version, version)
        self._version = version
        self._version_is_unknown = False
        self._kind = RequestKind.WATCH
        self.is_synced = True

    def _watch_failed(self, error: ClusterError, now: float) -> None:
        if isinstance(error, ApiError) and _forgotten(error):
            self._version_is_unknown = self._version_is_unknown or _is_too_large(error)
            self._anew(now)
        elif self._events and isinstance(error, Unreachable):
            if now - self._began_at < SHORT_WATCH_S:
                self._later(now)  # else the same watch goes on at once, from the newest version
        elif isinstance(error, ApiError) and error.reason in (TOO_MANY_REQUESTS, INTERNAL_ERROR):
            self._later(now, error)
        else:
            self._anew(now, error)

    def _streaming_list_failed(self, error: ClusterError, now: float) -> None:
        self._initial = {}
        if isinstance(error, ApiError) and _forgotten(error) and not self._version_is_unknown:
            self._version_is_unknown = True
        elif isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.reason == TOO_MANY_REQUESTS):
            self._later(now, error)
        else:
            self._kind = RequestKind.LIST

    def _list_failed(self, error: ClusterError, now: float) -> None:
        was_paging, self._continue, self._pages = bool(self._continue), "", []
        if isinstance(error, ApiError) and _forgotten(error) and was_paging and not self._full_list:
            self._full_list = True  # the pages' version is too old: all at once
        elif isinstance(error, ApiError) and _forgotten(error) and not self._version_is_unknown:
            self._version_is_unknown = True
        else:
            self._full_list = False
            self._anew(now, error)

    def _later(self, now: float, error: ClusterError | None = None) -> None:
        """Ask again after a pause, which is at least as long as the server wants it."""
        wanted_s = error.retry_after_s if isinstance(error, ApiError) else None
        self._pause_s = max(self._backoff.pause_s(now), min(wanted_s or 0.0, MAX_WANTED_PAUSE_S))

    def _anew(self, now: float, error: ClusterError | None = None) -> None:
        """Everything from the beginning, after a pause."""
        self._kind = RequestKind.STREAMING_LIST
        self._later(now, error)

    def _list_query(self) -> Mapping[str, str]:
        if self._continue:
            return {**self._selectors, "limit": str(PAGE_SIZE), "continue": self._continue}
        version = "" if self._version_is_unknown or self._full_list else self._version or "0"
        query = {**self._selectors, "resourceVersion": version} if version else dict(self._selectors)
        if not self._full_list and version in ("", "0"):
            query["limit"] = str(PAGE_SIZE)
        return query

    def _watch_query(self) -> Mapping[str, str]:
        timeout_s = int((SHORT_SIGHTED_S if self._has_left_out else MIN_WATCH_S) * (1.0 + self._chance()))
        query = {"allowWatchBookmarks": "true", **self._selectors}
        version = "" if self._version_is_unknown and self._kind is RequestKind.STREAMING_LIST else self._version
        if version:
            query["resourceVersion"] = version
        if self._kind is RequestKind.STREAMING_LIST:
            query |= {"resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"}
        if self._says_timeout:
            query["timeout"] = _go_seconds(timeout_s)
        return query | {"timeoutSeconds": str(timeout_s), "watch": "true"}


def _forgotten(error: ApiError) -> bool:
    """Whether the server does not have the version that was asked for, any more or yet."""
    return error.is_expired or _is_too_large(error)


def _is_too_large(error: ApiError) -> bool:
    return error.has_cause(TOO_LARGE_VERSION) or _OLD_WORDS in error.message


def _falls(known: str, seen: str) -> bool:
    """Whether the version is lower than the one before. Versions that are no numbers cannot be compared."""
    if not (_is_number(known) and _is_number(seen)):
        return False
    return (len(seen), seen) < (len(known), known)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdecimal() and not version.startswith("0")


def _go_seconds(seconds: int) -> str:
    """As Go prints a duration of whole seconds below an hour: ``9m36s``."""
    return f"{seconds // 60}m{seconds % 60}s"
