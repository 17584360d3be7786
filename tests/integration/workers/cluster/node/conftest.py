"""A node's keeper and the API server that it speaks to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host.clock import Clock, SystemClock
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.k8s.nodestatus.node import NodeCondition
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.api_server import AgentChanged
from ipc.link.messages.base import EventReport
from ipc.link.shm.board import Board
from ipc.link.wire.boot import WorkerSettings
from ipc.link.wire.cluster_settings import ClusterSettings
from ipc.link.wire.server_settings import ServerSettings
from tests.fakes.ownership import LABEL_KEY
from tests.support.servers.kube_api.server import KubeApiServer
from workers.cluster.node.node_sync import NodeSync
from workers.cluster.node.observer import NodeObserver
from workers.cluster.node.types import ClusterNode
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit
from workers.nodestatus.images import StoredImage

QUICK = ClusterSettings(
    kubeconfig="",
    pki_dir="",
    status_update_s=0.05,
    status_report_s=60.0,
    lease_duration_s=1,
    node_labels={"disk": "ssd"},
)
AGENT = AgentChanged(
    version="0.1.0",
    instance="test",
    node_name="n1",
    pid=1,
    started_at=0.0,
    runtime_version="5.0.0",
    runtime_healthy=True,
    runtime_message="",
    sources_ready=True,
    workers=(),
)


class Node:
    """A keeper, with what it tells."""

    def __init__(self, client: ApiClient, settings: ClusterSettings, clock: Clock) -> None:
        self.board = Board.create(worker_slots=1, pod_rows=1)
        self.board.record_host_ips(("192.0.2.1",))
        self.board.record_relist(clock.now().mono)
        self.events: list[EventReport] = []
        self.seen: list[ClusterNode] = []
        worker = WorkerSettings(
            instance="test",
            label_key=LABEL_KEY,
            node_name="n1",
            podman_socket="",
            pod_logs_dir="",
            node=NodeResources(capacity={"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10Gi"}),
            server=ServerSettings(secure_port=10250),
        )
        self.observer = NodeObserver(worker, settings, self.board, self.images, clock)
        self.keeper = NodeSync(
            client,
            self.observer,
            settings,
            "n1",
            clock,
            tell=self.events.append,
            node_seen=self.seen.append,
            close_connections=client.close_connections,
        )

    async def images(self) -> tuple[StoredImage, ...]:
        return (StoredImage(id="a", size=7, repo_tags=("localhost/a:1",)),)

    def take(self, **changes: Any) -> None:
        self.keeper.take(msgspec.structs.replace(AGENT, **changes))


Started = Callable[..., contextlib.AbstractAsyncContextManager[Node]]


@pytest.fixture
async def server() -> AsyncIterator[KubeApiServer]:
    async with KubeApiServer() as server:
        yield server


@pytest.fixture
def started(server: KubeApiServer, tmp_path: Path) -> Started:
    """A node that runs as long as the block, as its own user."""

    @contextlib.asynccontextmanager
    async def start(
        settings: ClusterSettings = QUICK, user: str = "system:node:n1", runtime_healthy: bool = True
    ) -> AsyncIterator[Node]:
        config = server.kubeconfig(tmp_path, user, "token")
        access = decode_kubeconfig(config.read_bytes(), str(tmp_path))
        clock = SystemClock()
        client = ApiClient(access, clock, user_agent="test", limit=RateLimit(0, 1))
        node = Node(client, settings, clock)
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(loop()) for loop in node.keeper.loops().values()]
            node.take(runtime_healthy=runtime_healthy)
            try:
                yield node
            finally:
                for task in work:
                    task.cancel()
        client.close_connections()

    return start


def pressure(kind: str) -> NodeCondition:
    return NodeCondition(type=kind, status="True")
