"""Pods of a server that fails in every way, by chance: no pod ends because of the server, and in the end it knows all.

The way of the pods is the real one, client, reflector, source, merge, statuses; the node's master is a model that does
at once what the merge says.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from tests.integration.workers.cluster.model_node import Node
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.lies import LIES
from tests.support.servers.kube_api.server import KubeApiServer
from workers.cluster.pods import status_manager
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit

DEADLINE_S = 60.0
STEPS = 40


@pytest.fixture
async def server() -> AsyncIterator[KubeApiServer]:
    async with KubeApiServer() as made:
        made.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
        yield made


def manifest(name: str) -> JsonObject:
    spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False}
    return {"metadata": {"name": name}, "spec": spec}


def some_fault(server: KubeApiServer, chance: random.Random) -> None:
    faults, verb = server.faults, chance.choice(["", "PATCH", "DELETE"])
    choices: list[Callable[[], None]] = [
        lambda: faults.drop(verb, "/pods"),
        lambda: faults.drop_answer(verb, "/pods"),
        lambda: faults.delay(0.05, verb, "/pods", 3),
        lambda: faults.answer(chance.choice([429, 500, 503, 504]), verb, "/pods"),
        lambda: faults.conflict("/pods"),
        lambda: faults.garble(chance.choice(LIES).body, verb or "PATCH", "/pods"),
        faults.drop_watches,
        faults.expire,
    ]
    chance.choice(choices)()


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():  # noqa: ASYNC110 - the server has no event for all that
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(what) from None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_no_pod_ends_because_of_the_server(
    server: KubeApiServer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_manager, "RETRY_S", 0.1)
    chance = random.Random(seed)
    access = decode_kubeconfig(server.kubeconfig(tmp_path).read_bytes(), str(tmp_path))
    client = ApiClient(access, SystemClock(), user_agent="test", limit=RateLimit(0, 1))
    node, wanted, number = Node(client), set[str](), 0
    work = [asyncio.ensure_future(node.reflector.run()), asyncio.ensure_future(node.writer.run())]
    try:
        for _ in range(STEPS):
            match chance.randrange(4):
                case 0 | 1:
                    number += 1
                    server.schedule(manifest(f"p{number}"))
                    wanted.add(f"p{number}")
                case 2 if wanted:
                    name = chance.choice(sorted(wanted))
                    wanted.discard(name)
                    server.delete_pod(name)
                case _:
                    some_fault(server, chance)
            await asyncio.sleep(0.02 * chance.random())  # the next step meets the last one at any point of it
        server.faults.partition()
        await asyncio.sleep(0.1)  # a while without a server
        server.faults.heal()

        def is_settled() -> bool:
            pods = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in server.store.all("pods")}
            return pods == dict.fromkeys(wanted, "Running") and set(node.running.values()) == wanted

        await until(is_settled, f"seed {seed}: {len(wanted)} pods run and the server knows it")
        assert node.removed == set()
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        node.pods.close()
        client.close()
