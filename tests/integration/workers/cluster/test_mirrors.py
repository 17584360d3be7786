"""Mirrors of static pods on a server whose answers are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.annotations import CONFIG_HASH
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.api_server import PodChanged
from tests.support.manifests import pod
from tests.support.servers.kube_api.lies import LIES, Liar, Lie, Pace
from tests.support.servers.kube_api.server import KubeApiServer
from workers.cluster.pods import mirror_pods
from workers.cluster.pods.known_pod import KnownPod, decode_known_pod
from workers.cluster.pods.mirror_pods import MirrorPods
from workers.cluster.pods.status_manager import StatusManager
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import PODS

DEADLINE_S = 30.0


class Mirrors:
    """Sink of the node's pods, all of which are mirrors."""

    def __init__(self, keeper: MirrorPods) -> None:
        self.keeper = keeper

    def replaced(self, items: Sequence[KnownPod]) -> None:
        for item in items:
            self.keeper.known(item.uid, item)
        self.keeper.listed()

    def changed(self, item: KnownPod) -> None:
        self.keeper.known(item.uid, item)

    def deleted(self, item: KnownPod) -> None:
        self.keeper.known(item.uid, None)


@pytest.fixture
async def server() -> AsyncIterator[KubeApiServer]:
    async with KubeApiServer() as made:
        made.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
        yield made


@pytest.fixture
async def keeper(server: KubeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MirrorPods]:
    """At work."""
    monkeypatch.setattr(mirror_pods, "RETRY_S", 0.05)
    access = decode_kubeconfig(server.kubeconfig(tmp_path).read_bytes(), str(tmp_path))
    client = ApiClient(access, SystemClock(), user_agent="test", limit=RateLimit(0, 1))
    made = MirrorPods(client, "n1", StatusManager(), SystemClock())
    selector = "spec.nodeName=n1"
    reflector = Reflector(client, PODS, field_selector=selector, decode=decode_known_pod, sink=Mirrors(made))
    tasks = BackgroundTasks()
    tasks.spawn(reflector.run(), name="pods")
    await reflector.synced.wait()
    made.sources_ready()
    tasks.spawn(made.run(), name="mirrors")
    yield made
    await tasks.close()
    client.close()


def reported(version: int) -> PodChanged:
    """A static pod of that content."""
    made = pod("web")
    metadata = msgspec.structs.replace(made.metadata, uid="static", annotations={CONFIG_HASH: str(version)})
    return PodChanged(
        resource_version=version,
        pod=msgspec.structs.replace(made, metadata=metadata),
        status=PodStatus(phase="Running"),
        source="file",
    )


def versions(server: KubeApiServer) -> list[str]:
    """Contents of all mirrors."""
    return [each["metadata"]["annotations"][CONFIG_HASH] for each in server.store.all("pods")]


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():  # noqa: ASYNC110 - the server has no event for all that
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(what) from None


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie.pace is not Pace.DRIP], ids=lambda lie: lie.name)
async def test_a_mirror_is_made_replaced_and_taken_away_whatever_was_answered_before(
    server: KubeApiServer, keeper: MirrorPods, lie: Lie, caplog: pytest.LogCaptureFixture
) -> None:
    """Each endpoint lies once, also that it has done what it has not."""
    for version in (1, 2):
        liar = server.faults.liar = Liar((lie,))
        keeper.report(reported(version))
        await until(lambda version=version: versions(server) == [str(version)], f"the mirror is that of {version}")  # type: ignore[misc]
    assert set(liar.told) >= {("get", "nodes"), ("create", "pods"), ("delete", "pods")}
    server.faults.liar = Liar((lie,))
    keeper.gone(reported(2).pod.metadata.uid)
    await until(lambda: not versions(server), "the mirror is gone")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_one_that_was_made_without_an_answer_is_found(server: KubeApiServer, keeper: MirrorPods) -> None:
    server.faults.drop_answer("POST", "/pods$")
    keeper.report(reported(1))
    await until(lambda: versions(server) == ["1"], "the mirror is there")
    keeper.report(reported(2))
    await until(lambda: versions(server) == ["2"], "the mirror is that of the newest content")
