"""The lease: made with its owner, renewed in time, read again after a conflict, kept at while the server is away."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from tests.fakes.clock import SimClock, simulated
from workers.cluster.node.lease import MAX_UPDATES, Lease, LeaseController, new_lease
from workers.kubeclient.errors import ApiError, Unreachable
from workers.kubeclient.protocol import Client, Verb, WatchEvent

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Server(Client):
    """Keeps one lease, with an optimistic lock."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.is_away = False
        self.asked: list[tuple[float, str]] = []

    def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[WatchEvent, None]:
        raise AssertionError("nobody watches a lease")

    async def request(self, verb: Verb, path: str, *, body: bytes | None = None, **_: Any) -> bytes:
        self.asked.append((asyncio.get_running_loop().time(), verb))
        if self.is_away:
            raise Unreachable("away")
        sent: dict[str, Any] = msgspec.json.decode(body) if body else {}
        if verb == "POST":
            assert path == PATH
            self.lease = {**sent, "metadata": {**sent["metadata"], "resourceVersion": "1", "labels": {"a": "b"}}}
        elif self.lease is None:
            raise ApiError(404, "NotFound", "no lease")
        elif verb == "PUT":
            self._update(sent)
        return msgspec.json.encode(self.lease)

    def _update(self, sent: dict[str, Any]) -> None:
        assert self.lease is not None
        version = self.lease["metadata"]["resourceVersion"]
        if sent["metadata"]["resourceVersion"] != version:
            raise ApiError(409, "Conflict", "modified")
        self.lease = {**sent, "metadata": {**sent["metadata"], "resourceVersion": str(int(version) + 1)}}

    def touch(self) -> None:
        """Somebody else writes it."""
        assert self.lease is not None
        self._update(self.lease)

    def verbs(self) -> list[str]:
        return [verb for _, verb in self.asked]


def keeper(server: Server, uid: str = "u", failures: list[None] | None = None) -> LeaseController:
    failed = [] if failures is None else failures
    return LeaseController(
        server,
        "n1",
        40,
        SimClock(),
        node_uid=lambda: uid,
        on_repeated_failure=lambda: failed.append(None),
        chance=lambda: 0.0,
    )


@simulated
async def test_it_is_renewed_every_ten_seconds() -> None:
    server = Server()
    task = asyncio.create_task(keeper(server).run())
    await asyncio.sleep(31)
    task.cancel()
    assert server.verbs() == ["GET", "POST", "PUT", "PUT", "PUT"]
    times = [at for at, verb in server.asked if verb == "PUT"]
    assert [round(later - sooner, 3) for sooner, later in itertools.pairwise(times)] == [10.0, 10.0]
    assert server.lease is not None
    assert server.lease["metadata"]["labels"] == {"a": "b"}, "others' fields stay"
    assert server.lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    ]


@simulated
async def test_without_a_node_there_is_no_lease() -> None:
    server = Server()
    await keeper(server, uid="").sync()
    assert server.verbs() == ["GET"]


@simulated
async def test_after_a_conflict_it_is_read_again() -> None:
    server = Server()
    lease = keeper(server)
    await lease.sync()
    server.touch()
    await lease.sync()
    assert server.verbs() == ["GET", "POST", "PUT", "GET", "PUT"]


@simulated
async def test_failures_again_and_again_close_connections_and_an_hour_later_it_goes_on() -> None:
    server, failures = Server(), list[None]()
    lease = keeper(server, failures=failures)
    task = asyncio.create_task(lease.run())
    await asyncio.sleep(1)
    server.is_away = True
    await asyncio.sleep(3600)
    assert len(failures) == MAX_UPDATES - 1
    rate = len([at for at, _ in server.asked if at > asyncio.get_running_loop().time() - 600]) / 600
    assert rate < 0.2, "one request in seven seconds"
    server.is_away = False
    before = len(server.asked)
    await asyncio.sleep(20)
    task.cancel()
    assert "PUT" in server.verbs()[before:]


def test_an_owner_is_added_to_a_lease_without_one() -> None:
    base = Lease(metadata=new_lease(None, "n1", "u", 40, 0.0).metadata)  # type: ignore[union-attr]
    bare = msgspec.structs.replace(base, metadata=msgspec.structs.replace(base.metadata, owner_references=()))
    renewed = new_lease(bare, "n1", "u2", 40, 1.5)
    assert renewed is not None
    assert renewed.metadata.owner_references[0].uid == "u2"
    assert renewed.spec.renew_time == "1970-01-01T00:00:01.500000Z"
