"""Events on their way to the API server: made once, patched from then on, limited, tried again, given up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from ipc.host.clock import rfc3339
from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from tests.fakes.clock import START_WALL, SimClock, simulated
from workers.cluster.events.cluster_event import event_body
from workers.cluster.events.sender import MAX_TRIES, MAX_WAITING, PAUSE_S, EventSender
from workers.cluster.events.spam_filter import BURST, MAX_BUCKETS, SpamFilter
from workers.kubeclient.errors import ApiError, StatusCause, Unreachable
from workers.kubeclient.protocol import JSON, STRATEGIC_MERGE_PATCH, Client, Verb, WatchEvent


def event(name: str = "web.1", *, count: int = 1, pod: str = "web", at: float = START_WALL, kind: str = "Pod") -> Event:
    return Event(
        metadata=ObjectMeta(name=name, namespace="ns", annotations={CONFIG_SEEN: "x"}),
        involved_object=ObjectReference(api_version="v1", kind=kind, namespace="ns", name=pod, uid="u"),
        reason="Pulled",
        message="here",
        type="Normal",
        first_timestamp=rfc3339(START_WALL),
        last_timestamp=rfc3339(at),
        count=count,
    )


class Server(Client):
    """Keeps names of events; answers what the test says, at first."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.requests: list[tuple[str, str]] = []
        self.counts: dict[str, int] = {}
        self.bodies: list[Mapping[str, Any]] = []

    def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[WatchEvent, None]:
        raise AssertionError("events are sent, and not read")

    async def request(
        self, verb: Verb, path: str, *, body: bytes | None = None, content_type: str = JSON, **_: Any
    ) -> bytes:
        self.requests.append((verb, path))
        assert (content_type == STRATEGIC_MERGE_PATCH) == (verb == "PATCH")
        if self.errors:
            raise self.errors.pop(0)
        fields = msgspec.json.decode(body or b"")
        self.bodies.append(fields)
        name = fields["metadata"]["name"] if verb == "POST" else path.rpartition("/")[2]
        if verb == "POST" and name in self.counts:
            raise ApiError(409, "AlreadyExists", "it is there")
        if verb == "PATCH" and name not in self.counts:
            raise ApiError(404, "NotFound", "it is not there")
        self.counts[name] = fields["count"]
        return b"{}"


@contextlib.asynccontextmanager
async def sending(server: Server, begun_at: float | None = START_WALL) -> AsyncIterator[EventSender]:
    sender = EventSender(server, "n1", SimClock(), chance=lambda: 0.5)
    if begun_at is not None:
        sender.begin(begun_at)
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        task.cancel()


@simulated
async def test_an_event_is_made_once_and_patched_from_then_on() -> None:
    server = Server()
    async with sending(server) as sender:
        sender.take(event())
        await asyncio.sleep(1)
        sender.take(event(count=2))
        await asyncio.sleep(1)
    assert server.requests == [
        ("POST", "/api/v1/namespaces/ns/events"),
        ("PATCH", "/api/v1/namespaces/ns/events/web.1"),
    ]
    assert server.bodies[1] == {"count": 2, "lastTimestamp": rfc3339(START_WALL), "message": "here"}


@simulated
async def test_an_event_that_the_server_has_forgotten_is_made_anew() -> None:
    server = Server()
    async with sending(server) as sender:
        sender.take(event(count=7))
        await asyncio.sleep(1)
    assert [verb for verb, _ in server.requests] == ["PATCH", "POST"]
    assert server.counts == {"web.1": 7}


@simulated
async def test_without_an_answer_it_is_tried_for_two_minutes() -> None:
    server = Server(*[Unreachable("away")] * MAX_TRIES)
    async with sending(server) as sender:
        sender.take(event("a"))
        sender.take(event("b"))
        await asyncio.sleep(PAUSE_S * (MAX_TRIES - 2) + PAUSE_S / 2 - 1)
        assert len(server.requests) == MAX_TRIES - 1
        await asyncio.sleep(2)
    assert server.counts == {"b": 1}, "the first was given up, the next one goes on"


@simulated
async def test_what_the_server_refuses_is_not_tried_again() -> None:
    terminating = ApiError(403, "Forbidden", "it ends", causes=(StatusCause(reason="NamespaceTerminating"),))
    server = Server(terminating, ApiError(422, "Invalid", "no"))
    async with sending(server) as sender:
        for name in "abc":
            sender.take(event(name))
        await asyncio.sleep(1)
    assert server.counts == {"c": 1}


@simulated
async def test_only_the_newest_state_of_an_event_waits() -> None:
    server = Server(Unreachable("away"))
    async with sending(server) as sender:
        sender.take(event("a"))
        await asyncio.sleep(1)
        for count in range(1, 5):
            sender.take(event("b", count=count))
        await asyncio.sleep(PAUSE_S)
    assert server.counts == {"a": 1, "b": 4}


@simulated
async def test_when_too_many_wait_the_oldest_go() -> None:
    server = Server(Unreachable("away"))
    async with sending(server) as sender:
        for number in range(MAX_WAITING + 5):
            sender.take(event(f"e{number}", pod=f"p{number}"))
        await asyncio.sleep(PAUSE_S)
    assert len(server.counts) == MAX_WAITING
    assert "e4" not in server.counts
    assert "e5" in server.counts


@simulated
async def test_of_the_history_what_this_agent_has_seen_goes() -> None:
    server = Server()
    server.counts["sent"] = 1
    async with sending(server, None) as sender:
        sender.take(event("old", at=START_WALL - 60))
        sender.take(event("sent"))
        sender.take(event("new", at=START_WALL + 1))
        await asyncio.sleep(1)
        assert server.requests == []
        sender.begin(START_WALL + 0.5)
        sender.begin(START_WALL + 0.5)
        await asyncio.sleep(1)
    assert server.counts == {"sent": 1, "new": 1}


def test_an_event_looks_as_a_kubelets() -> None:
    shown = msgspec.json.decode(event_body(event(), "n1"))
    assert shown["source"] == {"component": "kubelet", "host": "n1"}
    assert (shown["reportingComponent"], shown["reportingInstance"]) == ("kubelet", "n1")
    assert shown["metadata"] == {"name": "web.1", "namespace": "ns"}, "our own annotations stay here"
    assert shown["involvedObject"] == {"kind": "Pod", "namespace": "ns", "name": "web", "uid": "u", "apiVersion": "v1"}
    assert shown["eventTime"] is None
    node = msgspec.json.decode(event_body(event(kind="Node"), "n1"))
    assert node["metadata"]["namespace"] == "default"
    assert "namespace" not in node["involvedObject"]


def passes(spam: SpamFilter, now: float, **of: Any) -> Callable[[int], int]:
    return lambda times: sum(spam.lets_pass(event(**of), now) for _ in range(times))


def test_one_object_does_not_drown_the_others() -> None:
    spam = SpamFilter()
    assert passes(spam, 0.0)(BURST + 10) == BURST
    assert passes(spam, 0.0, pod="other")(3) == 3
    assert passes(spam, 299.0)(1) == 0
    assert passes(spam, 301.0)(5) == 1


def test_what_was_not_seen_for_long_is_forgotten() -> None:
    spam = SpamFilter()
    passes(spam, 0.0)(BURST)
    for number in range(MAX_BUCKETS):
        passes(spam, 0.0, pod=f"p{number}")(1)
    assert passes(spam, 0.0)(1) == 1
