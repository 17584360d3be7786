"""Answers of a server that are something else than what was asked for: each is one failed request, and no more."""

from __future__ import annotations

import logging
from typing import Final

import pytest

from tests.integration.workers.cluster.node.conftest import Started
from tests.integration.workers.cluster.node.test_keeper import renewal, status_patch
from tests.servers.kube_api.server import KubeApiServer

GARBAGE: Final = (b"null", b"[]", b"7", b'{"metadata":null}', b'{"metadata":{"name":"\xff"}}', b"[" * 9000, b"no", b"")


@pytest.mark.parametrize("body", GARBAGE)
async def test_node_and_lease_are_kept(
    server: KubeApiServer, started: Started, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for verb in ("GET", "PATCH", "PUT"):
        server.faults.garble(body, verb, "/nodes/n1|/leases/n1")
    with caplog.at_level(logging.WARNING):
        async with started() as node:
            await server.asked(renewal, times=3)
            await node.keeper.synced.wait()
            await server.asked(status_patch)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
