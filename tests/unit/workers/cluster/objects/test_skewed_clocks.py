"""Tokens of a server whose clock is minutes ahead of the node's, or behind: renewed in time, and not in a loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.podobjects.cluster_values import TokenRequest
from ipc.link.eventloop.tasks import BackgroundTasks
from tests.fakes.clock import SimClock, simulate
from workers.cluster.objects.tokens import SHORTEST_PERIOD_S, Tokens

LIFETIME_S = 3600
POD = Pod(
    metadata=ObjectMeta(name="web", namespace="default", uid="u1"),
    spec=PodSpec(containers=(Container(name="main", image="x"),)),
)


class Server:
    """Answers TokenRequests by its own clock."""

    def __init__(self, clock: SimClock, skew_s: float) -> None:
        self.asked_at: list[float] = []
        self._clock = clock
        self._skew_s = skew_s

    async def request(self, verb: str, path: str, **_: Any) -> bytes:
        now = self._clock.now()
        self.asked_at.append(now.mono)
        ends = rfc3339(now.wall + self._skew_s + LIFETIME_S)
        return msgspec.json.encode({"status": {"token": str(len(self.asked_at)), "expirationTimestamp": ends}})

    def watch(self, path: str, *, query: Mapping[str, str]) -> Any:
        raise AssertionError(path)


@pytest.mark.parametrize("skew_s", [0.0, 600.0, -600.0, -LIFETIME_S])
def test_a_token_is_renewed_before_the_server_ends_it(skew_s: float) -> None:
    """At 80 % of its life by the clock of the node, which is earlier or later by the skew."""

    async def main() -> list[float]:
        clock, tasks = SimClock(), BackgroundTasks()
        server = Server(clock, skew_s)
        tokens = Tokens(server, clock, lambda _: None, tasks, chance=lambda: 0.0)
        tokens.state(POD, (TokenRequest(audience="", expiration_s=LIFETIME_S),))
        await asyncio.sleep(LIFETIME_S)
        await tasks.close()
        return server.asked_at

    asked_at = simulate(main)
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    expected = max(0.8 * LIFETIME_S + skew_s, SHORTEST_PERIOD_S)
    assert all(expected - 1.0 <= pause <= expected + SHORTEST_PERIOD_S for pause in pauses), pauses
    assert max(pauses, default=0.0) < LIFETIME_S
    assert bool(pauses) == (expected < LIFETIME_S)
