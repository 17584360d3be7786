"""Decisions of a reflector, held against client-go's reflector.go and against a model of a server with faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kubeclient.errors import ApiError, ClusterError, StatusCause, Unreachable
from workers.kubeclient.protocol import WatchEvent
from workers.kubeclient.reflector_state import (
    FAILURES,
    MAX_UNREAD,
    PAUSE_RESET_S,
    Changed,
    Deleted,
    Delta,
    FailurePauses,
    LeftOut,
    NextRequest,
    ReflectorState,
    Replaced,
    RequestKind,
)

EXPIRED = ApiError(410, "Expired", "too old resource version")
REFUSED = Unreachable("connection refused")
TOO_LARGE = ApiError(504, "Timeout", "Too large resource version: 9", causes=(StatusCause("ResourceVersionTooLarge"),))


def no_chance() -> float:
    return 0.0


def reflector(**options: Any) -> ReflectorState:
    return ReflectorState(**{"chance": no_chance, **options})


def of(name: str, version: int, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": str(version), **metadata}}


def event(kind: str, name: str, version: int) -> WatchEvent:
    return WatchEvent(kind, json.dumps(of(name, version)).encode())


def bookmark(version: int, end: bool = False) -> WatchEvent:
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return WatchEvent("BOOKMARK", json.dumps(of("", version, annotations=annotations)).encode())


def page(version: int, *names: str, more: str = "") -> bytes:
    items = [of(name, version) for name in names]
    return json.dumps({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}).encode()


def names(delta: Delta | None) -> list[str]:
    assert isinstance(delta, Replaced)
    return [json.loads(each)["metadata"]["name"] for each in delta.objects]


def synced(version: int = 5, at: float = 0.0, **options: Any) -> ReflectorState:
    state = reflector(**options)
    state.next_request(at)
    assert isinstance(state.received(bookmark(version, end=True)), Replaced)
    return state


def test_begins_with_a_streaming_list() -> None:
    state = reflector(field_selector="spec.nodeName=n1")
    request = state.next_request(0.0)
    assert request == NextRequest(
        RequestKind.STREAMING_LIST,
        {
            "allowWatchBookmarks": "true",
            "fieldSelector": "spec.nodeName=n1",
            "resourceVersionMatch": "NotOlderThan",
            "sendInitialEvents": "true",
            "timeout": "5m0s",
            "timeoutSeconds": "300",
            "watch": "true",
        },
        0.0,
    )


def test_nothing_is_given_before_the_bookmark_and_then_everything() -> None:
    state = reflector()
    state.next_request(0.0)
    for one in (event("ADDED", "a", 1), event("ADDED", "b", 2), event("MODIFIED", "a", 3), event("DELETED", "b", 4)):
        assert state.received(one) is None
    assert state.received(bookmark(3)) is None
    assert not state.is_synced
    assert names(state.received(bookmark(7, end=True))) == ["a"]
    assert state.is_synced
    assert state.version == "7"
    assert isinstance(state.received(event("MODIFIED", "a", 8)), Changed)
    assert isinstance(state.received(event("DELETED", "a", 9)), Deleted)
    assert state.received(bookmark(12)) is None
    assert state.version == "12"


def test_a_watch_that_the_server_ends_goes_on_from_the_newest_version_at_once() -> None:
    state = synced(5)
    state.received(bookmark(9))
    state.ended(301.0)
    request = state.next_request(301.0)
    assert (request.kind, request.pause_s) == (RequestKind.WATCH, 0.0)
    assert request.query == {
        "allowWatchBookmarks": "true",
        "resourceVersion": "9",
        "timeout": "5m0s",
        "timeoutSeconds": "300",
        "watch": "true",
    }


def test_an_old_server_gives_a_list_of_pages() -> None:
    state = reflector(label_selector="x=y")
    state.next_request(0.0)
    state.failed(ApiError(422, "Invalid", "sendInitialEvents is forbidden"), 0.0)
    request = state.next_request(0.0)
    query = {"labelSelector": "x=y", "limit": "500", "resourceVersion": "0"}
    assert request == NextRequest(RequestKind.LIST, query, 0.0)
    assert state.listed(page(4, "a", more="next")) is None
    assert state.next_request(0.0).query == {"labelSelector": "x=y", "limit": "500", "continue": "next"}
    assert names(state.listed(page(4, "b"))) == ["a", "b"]
    assert state.next_request(0.0).query["resourceVersion"] == "4"


def test_pages_that_expire_are_asked_for_at_once_and_whole() -> None:
    state = reflector()
    state.next_request(0.0)
    state.failed(ApiError(403, "Forbidden", ""), 0.0)
    state.next_request(0.0)
    state.listed(page(4, "a", more="next"))
    state.failed(EXPIRED, 0.0)
    assert state.next_request(0.0) == NextRequest(RequestKind.LIST, {}, 0.0)
    assert names(state.listed(page(9, "c"))) == ["c"]


def test_an_expired_version_is_listed_anew() -> None:
    state = synced(5)
    with pytest.raises(ApiError) as raised:
        state.received(WatchEvent("ERROR", json.dumps({"kind": "Status", "code": 410, "reason": "Expired"}).encode()))
    state.failed(raised.value, 100.0)
    request = state.next_request(100.0)
    assert (request.kind, request.pause_s) == (RequestKind.STREAMING_LIST, FAILURES.initial_s)
    assert request.query["resourceVersion"] == "5"


@pytest.mark.parametrize("error", [EXPIRED, TOO_LARGE])
def test_a_version_that_the_server_does_not_know_is_dropped(error: ApiError) -> None:
    state = synced(5)
    state.failed(REFUSED, 100.0)
    assert state.next_request(100.0).kind is RequestKind.WATCH
    state.failed(REFUSED, 100.0)
    request = state.next_request(100.0)
    assert (request.kind, request.query["resourceVersion"]) == (RequestKind.STREAMING_LIST, "5")
    state.failed(error, 101.0)
    request = state.next_request(101.0)
    assert (request.kind, request.pause_s) == (RequestKind.STREAMING_LIST, 0.0)
    assert "resourceVersion" not in request.query
    state.received(bookmark(2, end=True))
    state.ended(500.0)
    assert state.next_request(500.0).query["resourceVersion"] == "2"


def test_versions_that_fall_mean_that_the_store_was_restored() -> None:
    state = synced(5000)
    with pytest.raises(ApiError) as raised:
        state.received(event("ADDED", "a", 4999))
    state.failed(raised.value, 10.0)
    request = state.next_request(10.0)
    assert request.kind is RequestKind.STREAMING_LIST
    assert "resourceVersion" not in request.query


def test_a_store_that_was_restored_is_listed_whatever_its_version() -> None:
    state = synced(5000)
    state.restored(10.0)
    request = state.next_request(10.0)
    assert (request.kind, request.pause_s) == (RequestKind.STREAMING_LIST, FAILURES.initial_s)
    assert "resourceVersion" not in request.query
    assert names(state.received(bookmark(7, end=True))) == []
    assert state.version == "7"


@pytest.mark.parametrize(("listed", "has_fallen"), [(4, True), (5, False), (6, False)])
def test_a_list_of_a_lower_version_shows_that_the_store_was_restored(listed: int, has_fallen: bool) -> None:
    state = synced(5)
    state.next_request(1.0)
    state.failed(EXPIRED, 1.0)
    state.next_request(2.0)
    assert names(state.received(bookmark(listed, end=True))) == []
    assert state.has_fallen is has_fallen


def test_versions_that_are_no_numbers_are_not_compared() -> None:
    state = synced(5)
    state.received(WatchEvent("ADDED", json.dumps(of("a", 0) | {"metadata": {"resourceVersion": "x9"}}).encode()))
    assert state.version == "x9"
    state.received(event("ADDED", "a", 3))
    assert state.version == "3"


def test_a_connection_that_breaks_goes_on_from_the_newest_version() -> None:
    state = synced(5)
    state.received(event("MODIFIED", "a", 6))
    state.failed(Unreachable("connection reset"), 60.0)
    request = state.next_request(60.0)
    assert (request.kind, request.pause_s, request.query["resourceVersion"]) == (RequestKind.WATCH, 0.0, "6")
    state.failed(REFUSED, 60.0)
    request = state.next_request(60.0)
    assert (request.kind, request.pause_s, request.query["resourceVersion"]) == (
        RequestKind.STREAMING_LIST,
        FAILURES.initial_s,
        "6",
    )


def test_a_server_that_breaks_every_connection_at_once_is_not_hammered() -> None:
    state = synced(5)
    pauses, now = [], 0.0
    for version in range(6, 12):
        state.received(event("MODIFIED", "a", version))
        state.failed(Unreachable("connection reset"), now)
        pauses.append(state.next_request(now).pause_s)
        now += pauses[-1]
    assert pauses == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6]


@pytest.mark.parametrize("way", ["streaming list", "watch"])
def test_a_watch_that_ends_at_once_with_nothing_is_a_failure(way: str) -> None:
    state = reflector() if way == "streaming list" else synced(5)
    state.ended(200.0)
    state.next_request(200.0)
    state.ended(200.5)
    assert state.next_request(200.5).pause_s >= FAILURES.initial_s


def test_the_server_is_given_the_time_that_it_wants() -> None:
    state = synced(5)
    state.failed(ApiError(429, "TooManyRequests", "", retry_after_s=20.0), 0.0)
    request = state.next_request(0.0)
    assert (request.kind, request.pause_s) == (RequestKind.WATCH, 20.0)
    state.failed(ApiError(429, "TooManyRequests", "", retry_after_s=10.0**6), 0.0)
    assert state.next_request(0.0).pause_s == 60.0


def test_pauses_double_with_a_jitter_and_begin_anew_after_two_minutes() -> None:
    backoff = FailurePauses(lambda: 1.0)
    pauses = [backoff.pause_s(float(now)) for now in range(8)]
    assert pauses == pytest.approx([1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 2 * FAILURES.max_s, 2 * FAILURES.max_s])
    assert backoff.pause_s(7.0 + PAUSE_RESET_S) == 2 * FAILURES.max_s
    assert backoff.pause_s(8.0 + 2 * PAUSE_RESET_S) == 2 * FAILURES.initial_s


def test_watches_of_pods_say_no_timeout() -> None:
    query = reflector(timeout=False).next_request(0.0).query
    assert "timeout" not in query
    assert query["timeoutSeconds"] == "300"


def test_watches_last_from_five_to_ten_minutes() -> None:
    query = reflector(chance=lambda: 0.92).next_request(0.0).query
    assert (query["timeoutSeconds"], query["timeout"]) == ("576", "9m36s")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"items":{}}', b"[" * 9000])
def test_what_is_no_list_is_a_failure(body: bytes) -> None:
    with pytest.raises(Unreachable):
        reflector().listed(body)


UNREAD: Final = (
    WatchEvent("NEW", b"{}"),
    WatchEvent("ADDED", b"[]"),
    WatchEvent("ADDED", b"null"),
    WatchEvent("DELETED", b'{"metadata":{"name":7}}'),
    WatchEvent("MODIFIED", b'{"metadata":{"name":"\xff"}}'),
    WatchEvent("ADDED", b"[" * 9000),
)


@pytest.mark.parametrize("wrong", UNREAD)
def test_an_event_that_cannot_be_read_is_left_out_and_everything_listed_after_a_short_watch(wrong: WatchEvent) -> None:
    state = synced()
    usual_s = int(state.next_request(1.0).query["timeoutSeconds"])
    assert isinstance(state.received(wrong), LeftOut)
    assert isinstance(state.received(event("ADDED", "next", 6)), Changed), "the others come"
    assert int(state.next_request(2.0).query["timeoutSeconds"]) < usual_s / 2
    state.ended(40.0)
    assert state.next_request(40.0).kind is RequestKind.STREAMING_LIST
    assert isinstance(state.received(bookmark(7, end=True)), Replaced)
    state.ended(400.0)
    assert state.next_request(400.0).kind is RequestKind.WATCH, "all is well again"


@pytest.mark.parametrize("wrong", UNREAD)
def test_a_list_in_which_something_cannot_be_read_is_not_whole(wrong: WatchEvent) -> None:
    state = reflector()
    state.next_request(0.0)
    state.received(event("ADDED", "a", 1))
    assert isinstance(state.received(wrong), LeftOut)
    found = state.received(bookmark(5, end=True))
    assert isinstance(found, Replaced)
    assert (len(found.objects), found.is_whole) == (1, False)


def test_a_watch_of_nothing_but_garbage_is_a_failure() -> None:
    state = synced()
    for _ in range(MAX_UNREAD):
        state.received(UNREAD[0])
    with pytest.raises(Unreachable):
        state.received(UNREAD[0])


# --- a server with faults -----------------------------------------------------------------------------------------


class ModelServer:
    """A collection with its history, of which it forgets the beginning; it can be restored to an older state."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, int] = {}
        self.history: list[tuple[str, str, int]] = []
        self.forgotten = 0
        self.streams = True

    def change(self, name: str) -> None:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = self.version
        self.history.append((kind, name, self.version))

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.version += 1
            del self.objects[name]
            self.history.append(("DELETED", name, self.version))

    def forget(self) -> None:
        self.forgotten = self.version

    def restore(self, version: int, objects: dict[str, int]) -> None:
        self.version, self.objects = version, dict(objects)
        self.history = []
        self.forgotten = version

    def events(self, query: Mapping[str, str]) -> list[WatchEvent]:
        asked = int(query.get("resourceVersion", "0"))
        if asked > self.version:
            if "sendInitialEvents" in query:
                raise TOO_LARGE
            return [bookmark(self.version)]
        if "sendInitialEvents" in query:
            if not self.streams:
                raise ApiError(422, "Invalid", "forbidden")
            initial = [event("ADDED", name, version) for name, version in self.objects.items()]
            return [*initial, bookmark(self.version, end=True)]
        if asked < self.forgotten:
            raise EXPIRED
        return [event(kind, name, at) for kind, name, at in self.history if at > asked] + [bookmark(self.version)]


class Copy:
    """The reflector's sink."""

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}

    def take(self, delta: Delta | None) -> None:
        match delta:
            case Replaced(objects):
                self.objects = dict(_named(each) for each in objects)
            case Changed(each):
                self.objects.update([_named(each)])
            case Deleted(each):
                self.objects.pop(_named(each)[0], None)


def _named(data: bytes) -> tuple[str, int]:
    metadata = json.loads(data)["metadata"]
    return metadata["name"], int(metadata["resourceVersion"])


NAMES = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("change"), NAMES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("fault"), st.sampled_from([REFUSED, EXPIRED, ApiError(429, "TooManyRequests", ""), None])),
    st.sampled_from([("forget", ""), ("restore", ""), ("save", ""), ("follow", ""), ("old", "")]),
)


def follow(state: ReflectorState, server: ModelServer, copy: Copy, now: float, cut: int | None = None) -> float:
    """One request and its answer, cut off after so many events; the time after it."""
    request = state.next_request(now)
    now += request.pause_s + 2.0
    try:
        if request.kind is RequestKind.LIST:
            copy.take(state.listed(page_of(server, request)))
            return now
        for number, each in enumerate(server.events(request.query)):
            if number == cut:
                raise Unreachable("connection reset")
            copy.take(state.received(each))
        state.ended(now)
    except ClusterError as error:
        state.failed(error, now)
    return now


def page_of(server: ModelServer, request: NextRequest) -> bytes:
    if int(request.query.get("resourceVersion", "0")) > server.version:
        raise TOO_LARGE
    items = [of(name, version) for name, version in server.objects.items()]
    return json.dumps({"metadata": {"resourceVersion": str(server.version)}, "items": items}).encode()


@given(st.lists(STEPS, max_size=40), st.integers(0, 4))
def test_the_copy_is_the_servers_state_once_faults_end(steps: list[tuple[str, Any]], cut: int) -> None:
    server, copy, state, now = ModelServer(), Copy(), reflector(), 0.0
    saved: tuple[int, dict[str, int]] = (1, {})
    for kind, value in steps:
        if kind == "change":
            server.change(value)
        elif kind == "delete":
            server.delete(value)
        elif kind == "forget":
            server.forget()
        elif kind == "save":
            saved = server.version, dict(server.objects)
        elif kind == "restore":
            server.restore(*saved)
            for _ in range(2):  # a server that is restored was down: its watch breaks, and nobody takes the next one
                now += state.next_request(now).pause_s
                state.failed(REFUSED, now)
        elif kind == "old":
            server.streams = not server.streams
        elif kind == "follow":
            now = follow(state, server, copy, now, cut)
        else:
            now += state.next_request(now).pause_s + 2.0
            state.ended(now) if value is None else state.failed(value, now)
    began = now
    for _ in range(8):
        now = follow(state, server, copy, now)
    assert copy.objects == server.objects
    assert now - began < 8 * (2 * FAILURES.max_s + 2.0)
