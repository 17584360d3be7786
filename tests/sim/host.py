"""The simulated host's memory, processes and disks: what they have, what pods and others take of them.

The node worker observes this host instead of the machine, and measures pods' use by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from unittest.mock import patch

from ipc.host.clock import Clock
from ipc.k8s.eviction.file_systems import Layout
from ipc.k8s.eviction.observations import SignalObservation
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from tests.sim.runtime import SimPodman, uid_of
from workers.eviction import node_pressure
from workers.eviction.node_signals import NodeSignals
from workers.stats.housekeeping import Housekeeping
from workers.stats.targets import PodTarget
from workers.statsapi.values import Memory, NodeSample, PodSample, Processes, Snapshot, Source, encode_snapshot

MIB: Final = 1 << 20
MEASURED_S: Final = 2.0
"""Longest round of statistics."""
NOT_MEASURED: Final = 0.1
"""Part of the rounds that give no statistics, while it is not quiet."""
VOLUME: Final = "scratch"
"""Name of the emptyDir that pods fill."""
MAX_SNAPSHOT: Final = 64 * 1024


class Taken(enum.StrEnum):
    """Things that a pod may take too much of."""

    MEMORY = enum.auto()
    PROCESSES = enum.auto()
    LAYER = enum.auto()
    LOG = enum.auto()
    VOLUME = enum.auto()
    FILES_IN_LAYER = enum.auto()
    FILES_IN_VOLUME = enum.auto()


CAPACITY: Final[Mapping[Signal, int]] = {
    Signal.MEMORY_AVAILABLE: 8192 * MIB,
    Signal.PID_AVAILABLE: 30_000,
    Signal.NODEFS_AVAILABLE: 10_000 * MIB,
    Signal.NODEFS_INODES_FREE: 600_000,
    Signal.IMAGEFS_AVAILABLE: 20_000 * MIB,
    Signal.IMAGEFS_INODES_FREE: 600_000,
}
_NODE: Final = (Signal.NODEFS_AVAILABLE, Signal.NODEFS_INODES_FREE)
_IMAGE: Final = (Signal.IMAGEFS_AVAILABLE, Signal.IMAGEFS_INODES_FREE)
_CONTAINER: Final = (Signal.CONTAINERFS_AVAILABLE, Signal.CONTAINERFS_INODES_FREE)
_OF_IMAGES: Final[Mapping[Layout, tuple[Signal, Signal]]] = {
    Layout.ONE: _NODE,
    Layout.DEDICATED_IMAGEFS: _IMAGE,
    Layout.SPLIT: _IMAGE,
}
"""File system that has the images."""
_OF_LAYERS: Final[Mapping[Layout, tuple[Signal, Signal]]] = {**_OF_IMAGES, Layout.SPLIT: _NODE}


class SimHost:
    """Outlives agents. Amounts are bytes, files or processes."""

    def __init__(self, rng: random.Random, podman: SimPodman, clock: Clock) -> None:
        self.layout = rng.choice(tuple(Layout))
        self.is_quiet = False
        self._rng = rng
        self._podman = podman
        self._clock = clock
        self._others: dict[Signal, int] = {}
        """Part of each signal that somebody takes who is no pod."""
        self._pods: defaultdict[str, dict[Taken, int]] = defaultdict(dict)

    # --- what is taken ---

    def take(self, uid: str, taken: Taken, amount: int) -> None:
        """A pod takes so much, as long as anything of it is there; of memory and processes while it runs."""
        self._pods[uid][taken] = amount

    def squeeze(self, signal: Signal, amount: int) -> None:
        """Somebody who is no pod takes so much."""
        self._others[signal] = amount

    def give_back(self, signal: Signal) -> None:
        self._others.pop(signal, None)

    def calm_down(self) -> None:
        """Nobody takes anything."""
        self._pods.clear()
        self._others.clear()

    def of_pod(self, uid: str) -> Mapping[Taken, int]:
        """Nothing of it is left when its containers are gone."""
        containers = self._podman.of_pod(uid)
        if not containers:
            self._pods.pop(uid, None)
        taken = self._pods.get(uid, {})
        if any(container.state == "running" for container in containers):
            return taken
        return {what: amount for what, amount in taken.items() if what not in (Taken.MEMORY, Taken.PROCESSES)}

    def signal_of(self, taken: Taken) -> Signal:
        """The signal that shrinks by it."""
        layers = _OF_LAYERS[self.layout]
        return {
            Taken.MEMORY: Signal.MEMORY_AVAILABLE,
            Taken.PROCESSES: Signal.PID_AVAILABLE,
            Taken.LAYER: layers[0],
            Taken.LOG: Signal.NODEFS_AVAILABLE,
            Taken.VOLUME: Signal.NODEFS_AVAILABLE,
            Taken.FILES_IN_LAYER: layers[1],
            Taken.FILES_IN_VOLUME: Signal.NODEFS_INODES_FREE,
        }[taken]

    @property
    def signal_of_images(self) -> Signal:
        return _OF_IMAGES[self.layout][0]

    def available(self, signal: Signal) -> int:
        """Rest of a signal that has a capacity."""
        used = self._others.get(signal, 0)
        used += sum(
            amount
            for uid in tuple(self._pods)
            for taken, amount in self.of_pod(uid).items()
            if self.signal_of(taken) is signal
        )
        if signal is self.signal_of_images:
            used += sum(image.size_bytes for image in self._podman.listed_images())
        return max(0, CAPACITY[signal] - used)

    # --- what the node worker sees ---

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """In place of the machine."""

        async def fresh(_: Housekeeping) -> bytes | None:
            return await self._statistics()

        with (
            patch.object(node_pressure, "observe_node", self._observe),
            patch.object(node_pressure, "usage_of_disk", self._usage_of_disk),
            patch.object(Housekeeping, "fresh", fresh),
        ):
            yield

    def _observe(self, wanted: Collection[Signal], _: object, time: float) -> NodeSignals:
        shown = {signal: signal for signal in CAPACITY}
        if self.layout is Layout.ONE:
            shown |= dict(zip(_IMAGE, _NODE, strict=True))
        shown |= dict(zip(_CONTAINER, _OF_LAYERS[self.layout], strict=True))
        return NodeSignals(
            signals={
                signal: SignalObservation(self.available(source), CAPACITY[source], time)
                for signal, source in shown.items()
                if signal in wanted
            },
            has_image_fs=self.layout is not Layout.ONE,
            is_split=self.layout is Layout.SPLIT,
        )

    def _usage_of_disk(self, pods: Iterable[PodTarget], *_: Any) -> tuple[PodUsage, ...]:
        return tuple(self._of_disk(pod) for pod in pods)

    def _of_disk(self, pod: PodTarget) -> PodUsage:
        """Usage of a pod whose first container has written everything."""
        taken = self.of_pod(pod.uid)
        layer = DiskUsage(taken.get(Taken.LAYER, 0), taken.get(Taken.FILES_IN_LAYER, 0))
        logs = DiskUsage(taken.get(Taken.LOG, 0), 0)
        containers = (ContainerUsage(name=each.name, rootfs=layer, logs=logs) for each in pod.containers[:1])
        volume = DiskUsage(taken.get(Taken.VOLUME, 0), taken.get(Taken.FILES_IN_VOLUME, 0))
        return PodUsage(uid=pod.uid, containers=tuple(containers), volumes={VOLUME: volume})

    async def _statistics(self) -> bytes | None:
        await asyncio.sleep(self._rng.uniform(0.01, MEASURED_S))
        if not self.is_quiet and self._rng.random() < NOT_MEASURED:
            return None
        running = {uid_of(c): None for c in self._podman.containers.values() if c.state == "running"}
        now = self._clock.now().wall
        samples = tuple(self._sample(uid, now) for uid in running if uid)
        return encode_snapshot(
            Snapshot(time=now, mono=self._clock.now().mono, node=NodeSample(name="sim"), pods=samples), MAX_SNAPSHOT
        )

    def _sample(self, uid: str, now: float) -> PodSample:
        taken, source = self.of_pod(uid), Source.CONTAINERS
        return PodSample(
            uid=uid,
            name=uid,
            namespace="default",
            memory=Memory(source=source, time=now, working_set=taken.get(Taken.MEMORY, 0)),
            processes=Processes(source=source, count=taken.get(Taken.PROCESSES, 0)),
        )
