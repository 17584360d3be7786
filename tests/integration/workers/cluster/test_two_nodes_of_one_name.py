"""Two agents that take themselves for the same node: each overwrites the other in a pace, and ends no pod."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from tests.integration.workers.cluster.model_node import Node
from tests.support.servers.kube_api.server import KubeApiServer
from workers.cluster.pods import status_manager
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit

PACE_S: Final = 0.5
PERIODS: Final = 6
DEADLINE_S: Final = 30.0


@contextlib.asynccontextmanager
async def running_node(server: KubeApiServer, directory: Path, name: str) -> AsyncIterator[Node]:
    """An agent that says another address of a pod than any other agent does."""
    access = decode_kubeconfig(server.kubeconfig(directory).read_bytes(), str(directory))
    client = ApiClient(access, SystemClock(), user_agent=name, limit=RateLimit(50, 100))
    node = Node(client, podIP=f"192.0.2.{len(name)}")
    work = [asyncio.ensure_future(node.reflector.run()), asyncio.ensure_future(node.writer.run())]
    try:
        yield node
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        node.pods.close()
        client.close()


async def test_each_overwrites_the_other_once_a_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_manager, "RECONCILE_S", PACE_S)
    async with KubeApiServer() as server:
        server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
        spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False}
        server.schedule({"metadata": {"name": "web"}, "spec": spec})
        loop = asyncio.get_running_loop()
        async with running_node(server, tmp_path, "a") as one, running_node(server, tmp_path, "bb") as other:
            began = loop.time()
            async with asyncio.timeout(DEADLINE_S):
                await server.asked(lambda request: request.verb == "PATCH", 2 * PERIODS)
            periods = (loop.time() - began) / PACE_S
            by_agent = Counter(request.headers["user-agent"] for request in server.requests if request.verb == "PATCH")
            assert set(by_agent) == {"a", "bb"}
            assert max(by_agent.values()) <= periods + 1
            for node in (one, other):
                assert list(node.running.values()) == ["web"]
                assert node.removed == set()
