"""Answers of a server that are something else than what was asked for: each is one failed request, and no more."""

from __future__ import annotations

import logging

import pytest

from tests.integration.workers.cluster.node.conftest import Started
from tests.integration.workers.cluster.node.test_node_sync import renewal, status_patch
from tests.support.servers.kube_api.lies import LIES, Liar, Lie, Pace
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.server import KubeApiServer

ENDPOINTS = {
    ("create", "nodes"),
    ("get", "nodes"),
    ("patch", "nodes/status"),
    ("create", "leases"),
    ("get", "leases"),
    ("update", "leases"),
    ("create", "csinodes"),
    ("get", "csinodes"),
    ("watch", "nodes"),
}


def made(request: Request) -> bool:
    return (request.verb, request.path, request.code) == ("POST", "/apis/storage.k8s.io/v1/csinodes", 201)


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie.pace is not Pace.DRIP], ids=lambda lie: lie.name)
async def test_node_and_lease_are_made_and_kept(
    server: KubeApiServer, started: Started, lie: Lie, caplog: pytest.LogCaptureFixture
) -> None:
    """Each endpoint lies once: also that something was made which was not."""
    liar = server.faults.liar = Liar((lie,))
    with caplog.at_level(logging.WARNING):
        async with started() as node:
            await server.asked(made)
            await server.asked(renewal, times=3)
            await node.keeper.synced.wait()
            await server.asked(status_patch)
    assert set(liar.told) >= ENDPOINTS - {("get", "nodes")}
    assert server.store.get("nodes", "", "n1")["metadata"]["name"] == "n1"
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
