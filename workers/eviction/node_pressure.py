"""The node worker's part of eviction: observes signals every ten seconds, and tells the master when one matters.

Upstream's manager reads a whole summary of statistics every ten seconds (pkg/kubelet/eviction/eviction_manager.go,
Start). Here a round reads a few files; while no threshold is met nobody is told, and what each pod uses is measured
when the master has to choose one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.eviction.file_systems import layout_of, with_containerfs
from ipc.k8s.eviction.observations import SignalObservation, of_memory, thresholds_met
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.eviction.usage import PodUsage
from ipc.link.messages.node_worker import NodeObserved, ObserveNode
from workers.eviction.node_signals import CONTAINERFS, NodeSignals, SignalPaths, observe_node
from workers.eviction.pod_usage import FROM_STATISTICS, usage_of, usage_of_disk
from workers.stats.targets import PodDirectories, PodTarget
from workers.userns.unshare import Unshare

PERIOD_S: Final = 10.0
"""pkg/kubelet/kubelet.go, evictionMonitoringPeriod."""

log = logging.getLogger(__name__)


class PressureSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds that are watched, and where."""

    thresholds: tuple[Threshold, ...]
    directories: PodDirectories
    pods_cgroup: str = ""
    """Cgroup of all pods; empty where there is none."""
    pods_memory: int = 0
    """Bytes that pods may have together where no cgroup holds them to it; 0: they are not counted."""


class NodePressure:
    """Observes for as long as the node worker lives. Without thresholds it does nothing but answer."""

    def __init__(
        self,
        settings: PressureSettings,
        clock: Clock,
        unshare: Unshare,
        *,
        image_root: Callable[[], str],
        targets: Callable[[], Sequence[PodTarget]],
        statistics: Callable[[], Awaitable[bytes | None]],
        report: Callable[[NodeObserved], Awaitable[None]],
    ) -> None:
        """``image_root``: a directory of Podman's storage; empty while it is not known. ``targets``: pods of which
        something runs. ``statistics``: a new snapshot; None when there is none."""
        self._settings = settings
        self._clock = clock
        self._unshare = unshare
        self._image_root = image_root
        self._targets = targets
        self._statistics = statistics
        self._report = report
        self._request: ObserveNode | None = None
        self._wake = asyncio.Event()
        self._is_none_reported = False
        """The master knows that no threshold is met."""

    def ask(self, request: ObserveNode) -> None:
        """Answer that as soon as possible, and any earlier one with it."""
        self._request = request
        self._wake.set()

    async def run(self) -> None:
        """Observe for ever."""
        while True:
            if self._settings.thresholds or self._request is not None:
                await self._round()
            await self._pause()

    async def _pause(self) -> None:
        """Until the next round is due, or wanted."""
        try:
            async with asyncio.timeout(PERIOD_S if self._settings.thresholds else None):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _round(self) -> None:
        self._wake.clear()
        request, self._request = self._request, None
        pods = await self._usage(request.resource) if request is not None and request.resource else None
        found = await asyncio.to_thread(self._observe, self._image_root())
        if self._settings.pods_memory:
            found.signals.update(await self._memory_of_pods())
        is_met = self._is_met(found)
        if request is None and not is_met and self._is_none_reported:
            return
        self._is_none_reported = not is_met
        await self._report(
            NodeObserved(
                signals=found.signals,
                has_image_fs=found.has_image_fs,
                is_split=found.is_split,
                answers=request.number if request is not None else 0,
                pods=pods,
            )
        )

    def _observe(self, image_root: str) -> NodeSignals:
        wanted = {threshold.signal for threshold in self._settings.thresholds} | CONTAINERFS
        places = SignalPaths(
            directories=(self._settings.directories.pods, self._settings.directories.logs),
            image_root=image_root,
            pods_cgroup=self._settings.pods_cgroup,
        )
        return observe_node(wanted, places, self._clock.now().wall)

    async def _memory_of_pods(self) -> dict[Signal, SignalObservation]:
        """Memory that pods may have together, without their working sets by their statistics. Nothing is observed where
        those do not come in time."""
        packed = await self._statistics()
        used = await asyncio.to_thread(memory_used, packed) if packed is not None else None
        found = of_memory(self._settings.pods_memory, used, self._clock.now().wall)
        return {Signal.ALLOCATABLE_MEMORY_AVAILABLE: found} if found is not None else {}

    def _is_met(self, found: NodeSignals) -> bool:
        """Whether a threshold is met, or not everything that is to be reclaimed is there yet."""
        layout = layout_of(has_image_fs=found.has_image_fs, is_split=found.is_split)
        thresholds = with_containerfs(self._settings.thresholds, layout)
        return bool(thresholds_met(thresholds, found.signals, enforce_min_reclaim=True))

    # --- what pods use ---

    async def _usage(self, resource: str) -> tuple[PodUsage, ...] | None:
        """None when it cannot be measured: then nobody is chosen by it."""
        if resource in FROM_STATISTICS:
            return await self._usage_of_statistics()
        count = functools.partial(usage_of_disk, tuple(self._targets()), self._settings.directories, self._unshare)
        return await asyncio.to_thread(count)

    async def _usage_of_statistics(self) -> tuple[PodUsage, ...] | None:
        packed = await self._statistics()
        if packed is None:
            log.warning("no statistics in time: no pod can be chosen for eviction")
            return None
        return await asyncio.to_thread(_decoded, packed)


def memory_used(packed: bytes) -> int:
    """Working sets of all pods of a snapshot, in bytes."""
    return sum(pod.memory or sum(each.memory or 0 for each in pod.containers) for pod in _decoded(packed))


def _decoded(packed: bytes) -> tuple[PodUsage, ...]:
    """Imported when it is first needed: the statistics of most nodes are never asked for."""
    from workers.statsapi.values import decode_snapshot

    return tuple(map(usage_of, decode_snapshot(packed).pods))
