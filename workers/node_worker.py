"""The node worker does what one process does for the whole node: it observes, pulls, collects garbage and statistics,
and speaks to the cluster where there is one.

Assembles the parts, of which each has its loop, and hands them the master's commands.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from ipc.host.clock import Clock
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podresources.pod_cgroups import pods_directory
from ipc.link.eventloop.tasks import restarted
from ipc.link.messages.api_server import (
    AgentChanged,
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from ipc.link.messages.base import Ready, Shutdown, TakeProfile
from ipc.link.messages.cluster import PodsTaken, RatesChanged
from ipc.link.messages.node_worker import (
    CancelPull,
    CollectImages,
    CollectLogs,
    DeleteVolume,
    NodeWorkerCommand,
    NodeWorkerReport,
    Observe,
    ObserveNode,
    Relist,
    SetLogRotation,
    StartPull,
    Track,
    Untrack,
    UpdatePodCgroups,
)
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.wire.boot import ChildContext, WorkerSettings
from ipc.link.wire.channel import Channel, ChannelClosed
from workers.cluster_host import ClusterHost
from workers.cm.cleanup import PodCgroupCleanup
from workers.containers.exit_watch import raise_file_limit
from workers.eviction.node_pressure import NodePressure, PressureSettings
from workers.images.collector import ImageCollector, NodeView
from workers.images.image_records import ImageRecords
from workers.images.provider_logins import ProviderLogins
from workers.images.pull_records import PullRecords
from workers.images.puller import ImagePuller
from workers.kubecontainer.image_service import ImageUser
from workers.kubecontainer.runtime import InspectedContainer, Runtime
from workers.logs.container_log_manager import ContainerLogManager
from workers.logs.gc import LogGarbageCollector
from workers.pleg.evented import EventedPLEG
from workers.pleg.generic import GenericPLEG
from workers.pleg.orphan_collector import OrphanCollector
from workers.podman_files.default_store import DefaultStore
from workers.profiling import ProfileRequests
from workers.stats.housekeeping import Housekeeping
from workers.stats.targets import PodDirectories, PodTarget, targets_of
from workers.tracing.export import export_traces
from workers.userns.unshare import Unshare
from workers.volumemanager.deletion import VolumeDeleter

if TYPE_CHECKING:
    from workers.stats.collector import Collector

Link = Channel[NodeWorkerReport, NodeWorkerCommand]

log = logging.getLogger(__name__)


async def run_node_worker(
    context: ChildContext,
    channel: Link,
    runtime: Runtime,
    clock: Clock,
    row_writer: WorkerRowWriter,
    unshare: Unshare,
    rng: random.Random | None = None,
    answers: asyncio.Event | None = None,
) -> None:
    """Serve until Shutdown or the end of the link. No error of the runtime ends it.

    ``answers`` is set when Podman is found to answer again (`workers.libpod.health`).
    """
    raise_file_limit()
    worker = NodeWorker(context, channel, runtime, clock, row_writer, unshare, rng or random.Random())
    await channel.send(Ready(pid=os.getpid()))
    try:
        async with asyncio.TaskGroup() as group:
            loops: Mapping[str, Callable[[], Awaitable[None]]] = {
                "observations": worker.pleg.observe,
                "Podman's events": worker.events.watch,
                "monitors' notes": worker.pleg.publish_recorded_ends,
                "leftover processes": worker.orphans.collect,
                "statistics": worker.statistics.run,
                "signals of eviction": worker.node_pressure.run,
                "directories of pods that are gone": worker.log_gc.collect,
                "volumes of claims that are gone": worker.deleted_volumes.run,
                "containers' logs": worker.logs.run,
                "slices of pods": worker.cgroups.run,
                "unused images": worker.images.collector.collect,
                "what a boot has left in the storage": worker.clear_storage,
                "inspects for a later process": worker.pleg.keep_inspects,
                "export of traces": functools.partial(
                    export_traces,
                    context.board.trace,
                    context.settings.tracing,
                    context.settings.instance,
                    context.settings.node_name,
                    clock,
                ),
                "Podman's return": functools.partial(worker.pleg.await_recovery, answers or asyncio.Event()),
            }
            work = [group.create_task(restarted(loop, name=name), name=name) for name, loop in loops.items()]
            work.append(group.create_task(worker.cluster.run(), name="cluster"))
            await worker.serve()
            for task in work:
                task.cancel()
    finally:
        await worker.close()


class NodeWorker:
    """The parts of the node worker, and the way of the master's commands to them."""

    def __init__(
        self,
        context: ChildContext,
        channel: Link,
        runtime: Runtime,
        clock: Clock,
        row_writer: WorkerRowWriter,
        unshare: Unshare,
        rng: random.Random,
    ) -> None:
        settings = context.settings
        self._channel = channel
        self._storage = ""
        """See `_image_root`."""
        self.cluster = ClusterHost(context, clock, self._send)
        self.orphans = OrphanCollector(runtime, settings.pod_logs_dir)
        self.pleg = GenericPLEG(
            context,
            runtime,
            clock,
            row_writer,
            rng,
            orphans=self.orphans,
            send=self._send,
            on_change=self._changed,
        )
        self.events = EventedPLEG(runtime, clock, self.pleg)
        self._profiles = ProfileRequests(self._send)
        self._default_store = DefaultStore(unshare.command) if settings.podman_forgets else None
        self.images = NodeImages(
            *(settings, runtime, clock, self.pleg.known.inspected.values, self._send),
            of_another_store=self._default_store.users if self._default_store is not None else tuple,
        )
        self._unshare = unshare
        self.statistics = Housekeeping(
            context.board.statistics,
            clock,
            rng,
            self._targets,
            functools.partial(_make_collector, settings, clock, unshare),
        )
        self.node_pressure = NodePressure(
            _pressure_settings(settings),
            clock,
            unshare,
            image_root=self._image_root,
            targets=self._targets,
            statistics=self.statistics.fresh,
            report=self._send,
        )
        self.log_gc = LogGarbageCollector(
            settings.pod_logs_dir,
            (settings.pods_dir, settings.memory_dir),
            settings.node_name,
            is_tracked=lambda uid: uid in self.pleg.published.tracked,
            report=self._send,
            unshare=unshare,
        )
        self.deleted_volumes = VolumeDeleter(self._send, unshare)
        self.cgroups = PodCgroupCleanup(runtime.slices, clock)
        self.logs = ContainerLogManager(settings.pod_logs_dir, settings.log_rotation, self._monitor_of, clock)

    async def clear_storage(self) -> None:
        """Remove what an earlier boot has left in the storage, where Podman has forgotten it. Raises OSError,
        UnshareError."""
        if self._default_store is not None:
            await self._default_store.clear(self._unshare)

    async def close(self) -> None:
        """Stop watching and pulling."""
        self.pleg.close()
        await self.logs.close()
        self._profiles.close()
        await self.images.close()

    async def serve(self) -> None:
        """Take the master's commands until Shutdown or the end of the link."""
        async for command in self._channel:
            match command:
                case Track(uid=uid, row=row):
                    self.pleg.track(uid, row)
                case Untrack(uid=uid):
                    self.pleg.untrack(uid)
                case Observe():
                    self.pleg.take_request(command)
                case Relist():
                    self.pleg.request_relist()
                case StartPull():
                    await self.images.puller.start(command.pull)
                case CancelPull():
                    self.images.puller.cancel(command.pull)
                case CollectLogs():
                    self.log_gc.ask(command)
                case DeleteVolume():
                    self.deleted_volumes.ask(command)
                case ObserveNode():
                    self.node_pressure.ask(command)
                case SetLogRotation(policy=policy):
                    self.logs.set_policy(policy)
                case UpdatePodCgroups():
                    self.cgroups.ask(command)
                case TakeProfile():
                    self._profiles.take(command)
                case CollectImages():
                    await self.images.collector.ask(command)
                case Shutdown():
                    return
                case PodChanged() | PodGone() | EventChanged() | EventGone() | ObjectChanged() | ObjectGone():
                    self.cluster.take(command)
                case AgentChanged() | FeedSynced() | PodsTaken() | RatesChanged():
                    self.cluster.take(command)
                case _:
                    assert_never(command)

    def _targets(self) -> Sequence[PodTarget]:
        """Pods of which statistics are collected."""
        return tuple(targets_of(self.pleg.published.statuses, self.pleg.known.inspected.get))

    def _image_root(self) -> str:
        """A directory of Podman's storage, as the layer of a container tells; empty while there was none."""
        if not self._storage:
            layers = (each.layer for pod in self._targets() for each in pod.containers)
            self._storage = next((str(Path(layer).parents[2]) for layer in layers if layer), "")
        return self._storage

    def _changed(self, status: RuntimePodStatus) -> None:
        self.logs.follow(status)

    def _monitor_of(self, container_id: str) -> int:
        found = self.pleg.known.inspected.get(container_id)
        return found.conmon_pid if found is not None else 0

    async def _send(self, report: NodeWorkerReport) -> None:
        try:
            await self._channel.send(report)
        except ChannelClosed:
            log.info("the master is gone")  # `serve` ends by itself, and everything with it.


def _make_collector(settings: WorkerSettings, clock: Clock, unshare: Unshare) -> Collector:
    """Imported when statistics are first asked for: most agents never are."""
    from workers.stats.collector import Collector

    return Collector(settings.node_name, _directories(settings), clock, unshare)


def _pressure_settings(settings: WorkerSettings) -> PressureSettings:
    cgroups = settings.node.pod_cgroups
    return PressureSettings(
        thresholds=settings.thresholds,
        directories=_directories(settings),
        pods_cgroup=pods_directory(cgroups) if cgroups is not None else "",
        pods_memory=settings.pods_memory,
    )


def _directories(settings: WorkerSettings) -> PodDirectories:
    return PodDirectories(pods=settings.pods_dir, logs=settings.pod_logs_dir, memory=settings.memory_dir)


class NodeImages:
    """Images of the node: the puller for all its pods and the collector, which share records of pulls and of use."""

    def __init__(
        self,
        settings: WorkerSettings,
        runtime: Runtime,
        clock: Clock,
        containers: Callable[[], Iterable[InspectedContainer]],
        send: Callable[[NodeWorkerReport], Awaitable[None]],
        of_another_store: Callable[[], Iterable[ImageUser]] = tuple,
    ) -> None:
        """``containers``: those of this agent, as they were inspected last. ``of_another_store``: as of `NodeView`."""
        pull_records = PullRecords(settings.pulled_images_dir)
        records = ImageRecords(settings.image_records_file, clock)
        self._providers = ProviderLogins(settings.credential_providers, clock)
        self.puller = ImagePuller(runtime, clock, pull_records, records, send, self._providers.find)
        view = NodeView(containers, lambda: self.puller.references, of_another_store)
        self.collector = ImageCollector(runtime, clock, records, pull_records, view, settings.node_name, send)

    async def close(self) -> None:
        """End pulls under way, and programs that were asked for logins."""
        await self.puller.close()
        await self._providers.close()
