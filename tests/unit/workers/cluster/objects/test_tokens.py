"""When a pod's tokens are asked for: not before the node has taken it, and never again after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.podobjects.cluster_values import TokenRequest
from ipc.link.eventloop.tasks import BackgroundTasks
from tests.fakes.clock import SimClock, simulated
from workers.cluster.objects.tokens import LONGEST_DECISION_S, Tokens

LIFETIME_S = 600
WISHES = (TokenRequest(audience="", expiration_s=LIFETIME_S),)


def pod(uid: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=uid, namespace="default", uid=uid),
        spec=PodSpec(containers=(Container(name="main", image="x"),)),
    )


class Server:
    """Issues tokens, and remembers for which pods."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._clock = SimClock()

    async def request(self, verb: str, path: str, *, body: bytes | None = None, **_: Any) -> bytes:
        self.asked.append(msgspec.json.decode(body or b"")["spec"]["boundObjectRef"]["uid"])
        ends = rfc3339(self._clock.now().wall + LIFETIME_S)
        return msgspec.json.encode({"status": {"token": "t", "expirationTimestamp": ends}})

    def watch(self, path: str, *, query: Mapping[str, str]) -> Any:
        raise AssertionError(path)


def tokens_of(server: Server) -> Tokens:
    return Tokens(server, SimClock(), lambda _: None, BackgroundTasks(), chance=lambda: 0.0)


@simulated
async def test_none_is_asked_for_before_the_pod_was_admitted() -> None:
    server = Server()
    tokens = tokens_of(server)
    tokens.state(pod("new"), WISHES, is_admitted=False)
    tokens.state(pod("old"), WISHES)
    await asyncio.sleep(0.1)
    assert server.asked == ["old"], "an earlier agent has taken that one"
    assert not tokens.are_tried("new")
    tokens.admitted("new")
    tokens.admitted("old")
    await asyncio.sleep(0.1)
    assert server.asked == ["old", "new"]
    assert tokens.are_tried("new")
    tokens.forget("new")
    tokens.forget("old")


@simulated
async def test_none_is_asked_for_a_pod_that_the_node_refuses() -> None:
    server = Server()
    tokens = tokens_of(server)
    tokens.state(pod("no"), WISHES, is_admitted=False)
    waiting = asyncio.create_task(tokens.tried("no"))
    await asyncio.sleep(0.1)
    tokens.refused("no")
    await waiting
    assert tokens.are_tried("no"), "nobody waits for it"
    tokens.state(pod("no"), WISHES)
    await asyncio.sleep(LONGEST_DECISION_S + 1)
    assert server.asked == []


@simulated
async def test_a_pod_about_which_nobody_decides_has_its_token_after_a_while() -> None:
    server = Server()
    tokens = tokens_of(server)
    tokens.state(pod("late"), WISHES, is_admitted=False)
    await asyncio.sleep(LONGEST_DECISION_S - 0.1)
    assert server.asked == []
    await asyncio.sleep(0.2)
    assert server.asked == ["late"]
    tokens.forget("late")


@simulated
async def test_a_refusal_that_comes_after_the_pod_was_taken_ends_nothing() -> None:
    """A pod that is evicted runs on for its grace period."""
    server = Server()
    tokens = tokens_of(server)
    tokens.state(pod("gone"), WISHES, is_admitted=False)
    tokens.admitted("gone")
    tokens.refused("gone")
    await asyncio.sleep(LIFETIME_S)
    assert len(server.asked) > 1
    tokens.forget("gone")


@simulated
async def test_none_is_renewed_for_a_pod_that_has_ended() -> None:
    server = Server()
    tokens = tokens_of(server)
    tokens.state(pod("done"), WISHES)
    await asyncio.sleep(0.1)
    tokens.end("done")
    tokens.state(pod("done"), WISHES)
    await asyncio.sleep(2 * LIFETIME_S)
    assert server.asked == ["done"]
