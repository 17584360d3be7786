"""When leftovers are looked for: after a death, and until nothing of it is undecided."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.fakes.clock import SimClock, simulate
from tests.fakes.ownership import signed_container
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime, Flavour
from workers.kubecontainer import labels
from workers.pleg.orphan_collector import OrphanCollector

SPEC = {"name": "main", "image": "x", "labels": {labels.INSTANCE: "one"}, "command": ("sleep", "1000")}


class Node:
    """The garbage collection of a node worker whose relists the test makes."""

    def __init__(self) -> None:
        self.podman = FakePodman(SimClock(), images=["x"])
        self.runtime = FakeRuntime(self.podman, "one")
        self.garbage = OrphanCollector(self.runtime, "/logs")

    async def observation_requests(self, relists: int = 1) -> int:
        """How often somebody looked in the course of so many relists."""
        before = self.runtime.calls.count("end_leftovers")
        for _ in range(relists):
            self.garbage.relisted()
            await asyncio.sleep(1)
        return self.runtime.calls.count("end_leftovers") - before


def on_node(scenario: Callable[[Node], Awaitable[None]]) -> None:
    async def main() -> None:
        node = Node()
        task = asyncio.create_task(node.garbage.collect())
        await scenario(node)
        task.cancel()

    simulate(main)


def test_once_at_the_start_and_once_after_every_death() -> None:
    async def scenario(node: Node) -> None:
        assert await node.observation_requests(3) == 1
        node.garbage.podman_was_lost()
        assert await node.observation_requests(3) == 1

    on_node(scenario)


def test_again_until_what_was_interrupted_is_replaced() -> None:
    async def scenario(node: Node) -> None:
        id = node.podman.create_container(signed_container(SPEC))
        node.podman.cut_start_container(id)
        assert await node.observation_requests(3) == 3
        node.podman.remove_container(id)
        assert node.podman.lost
        assert await node.observation_requests(3) == 1
        assert not node.podman.lost

    on_node(scenario)


def test_again_when_it_failed() -> None:
    async def scenario(node: Node) -> None:
        node.runtime.fail(1, Flavour.FAILED)
        assert await node.observation_requests(3) == 2

    on_node(scenario)
