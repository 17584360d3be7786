"""The node worker's part of eviction: what is observed, who is told and when."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.eviction.signals import EPHEMERAL_STORAGE, MEMORY, Signal
from ipc.k8s.eviction.thresholds import Threshold, ThresholdValue
from ipc.link.messages.node_worker import NodeObserved, ObserveNode
from workers.eviction import node_pressure
from workers.eviction.node_pressure import NodePressure, PressureSettings
from workers.eviction.node_signals import observe_node
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.statsapi.values import (
    ContainerSample,
    Memory,
    NodeSample,
    PodSample,
    Processes,
    Snapshot,
    Source,
    encode_snapshot,
)
from workers.userns.unshare import Unshare

ALWAYS = Threshold(signal=Signal.NODEFS_AVAILABLE, value=ThresholdValue(percentage=1.0))
"""Met wherever anything lies on the file system."""
NEVER = Threshold(signal=Signal.NODEFS_AVAILABLE, value=ThresholdValue(quantity="1"))
DEADLINE_S = 20.0


class Observer:
    """The real one, on this host; what it tells goes into a queue."""

    def __init__(
        self,
        directory: Path,
        thresholds: Sequence[Threshold],
        snapshot: Snapshot | None = None,
        pods_memory: int = 0,
    ) -> None:
        self.told: asyncio.Queue[NodeObserved] = asyncio.Queue()
        self._snapshot = snapshot
        self.asked_for_statistics = 0
        main = ContainerTarget(
            id="c", name="main", attempt=0, image="i", pid=1, start_ticks=1, started_at=0.0, layer=str(directory)
        )
        self._pod = PodTarget(
            uid="a", name="a", namespace="default", started_at=0.0, host_network=False, infra=None, containers=(main,)
        )
        self.part = NodePressure(
            PressureSettings(
                thresholds=tuple(thresholds),
                directories=PodDirectories(pods=str(directory), logs=str(directory)),
                pods_memory=pods_memory,
            ),
            SystemClock(),
            Unshare(),
            image_root=lambda: str(directory),
            targets=lambda: [self._pod],
            statistics=self._statistics,
            report=self.told.put,
        )

    async def _statistics(self) -> bytes | None:
        self.asked_for_statistics += 1
        return encode_snapshot(self._snapshot, 1 << 20) if self._snapshot is not None else None

    async def next(self) -> NodeObserved:
        async with asyncio.timeout(DEADLINE_S):
            return await self.told.get()


def run(observer: Callable[[], Observer], scenario: Callable[[Observer], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        made = observer()
        task = asyncio.create_task(made.part.run())
        try:
            await scenario(made)
        finally:
            task.cancel()

    asyncio.run(main())


def test_nobody_is_told_while_no_threshold_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_pressure, "PERIOD_S", 0.01)
    rounds = 0
    enough: list[Callable[[], object]] = []

    async def scenario(observer: Observer) -> None:
        first = await observer.next()
        assert first.signals.keys() >= {Signal.NODEFS_AVAILABLE}, "once, after a start: somebody may believe otherwise"
        came = asyncio.Event()
        enough.append(functools.partial(asyncio.get_running_loop().call_soon_threadsafe, came.set))
        async with asyncio.timeout(DEADLINE_S):
            await came.wait()
        assert observer.told.empty()
        assert observer.asked_for_statistics == 0

    def counted(*arguments: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if enough and rounds >= 10:
            enough[0]()
        return observe_node(*arguments)

    monkeypatch.setattr(node_pressure, "observe_node", counted)
    run(lambda: Observer(tmp_path, [NEVER]), scenario)


def test_each_round_is_told_while_one_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_pressure, "PERIOD_S", 0.01)

    async def scenario(observer: Observer) -> None:
        for _ in range(3):
            seen = await observer.next()
            assert (seen.answers, seen.pods) == (0, None)

    run(lambda: Observer(tmp_path, [ALWAYS]), scenario)


def test_a_request_is_answered_at_once_with_what_lies_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 65536)

    async def scenario(observer: Observer) -> None:
        await observer.next()
        observer.part.ask(ObserveNode(number=7, resource=EPHEMERAL_STORAGE))
        seen = await observer.next()
        assert seen.answers == 7
        assert seen.pods is not None
        [a] = seen.pods
        rootfs = a.containers[0].rootfs
        assert rootfs is not None
        assert (rootfs.used or 0) >= 65536
        assert observer.asked_for_statistics == 0

    run(lambda: Observer(tmp_path, [NEVER]), scenario)


def test_memory_and_processes_are_the_statistics(tmp_path: Path) -> None:
    memory = Memory(source=Source.CONTAINERS, time=1.0, working_set=123)
    sample = PodSample(
        uid="a", name="a", namespace="n", memory=memory, processes=Processes(source=Source.CONTAINERS, count=4)
    )
    snapshot = Snapshot(time=1.0, mono=1.0, node=NodeSample(name="n"), pods=(sample,))

    async def scenario(observer: Observer) -> None:
        await observer.next()
        observer.part.ask(ObserveNode(number=1, resource=MEMORY))
        seen = await observer.next()
        assert seen.pods is not None
        assert [(pod.uid, pod.memory, pod.processes) for pod in seen.pods] == [("a", 123, 4)]

    run(lambda: Observer(tmp_path, [NEVER], snapshot), scenario)


def test_memory_of_all_pods_is_counted_where_no_cgroup_does(tmp_path: Path) -> None:
    """Pods may have so much together without their working sets; of a pod without a figure those of its containers."""
    memory = Memory(source=Source.CONTAINERS, time=1.0, working_set=300)
    whole = PodSample(uid="a", name="a", namespace="n", memory=memory)
    parts = PodSample(uid="b", name="b", namespace="n", containers=(ContainerSample(name="c", id="c", memory=memory),))
    snapshot = Snapshot(time=1.0, mono=1.0, node=NodeSample(name="n"), pods=(whole, parts))
    least = Threshold(signal=Signal.ALLOCATABLE_MEMORY_AVAILABLE, value=ThresholdValue(quantity="500"))

    async def scenario(observer: Observer) -> None:
        seen = (await observer.next()).signals[Signal.ALLOCATABLE_MEMORY_AVAILABLE]
        assert (seen.available, seen.capacity) == (400, 1000)

    run(lambda: Observer(tmp_path, [least], snapshot, pods_memory=1000), scenario)

    async def without(observer: Observer) -> None:
        assert Signal.ALLOCATABLE_MEMORY_AVAILABLE not in (await observer.next()).signals

    run(lambda: Observer(tmp_path, [least, ALWAYS], pods_memory=1000), without)


def test_without_statistics_nothing_is_known_of_pods(tmp_path: Path) -> None:
    async def scenario(observer: Observer) -> None:
        await observer.next()
        observer.part.ask(ObserveNode(number=1, resource=MEMORY))
        assert (await observer.next()).pods is None

    run(lambda: Observer(tmp_path, [NEVER]), scenario)


def test_without_thresholds_nothing_is_observed_unless_somebody_asks(tmp_path: Path) -> None:
    async def scenario(observer: Observer) -> None:
        observer.part.ask(ObserveNode(number=3))
        assert (await observer.next()).answers == 3
        assert observer.told.empty()

    run(lambda: Observer(tmp_path, []), scenario)
