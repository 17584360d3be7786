"""Pod worker: syncs one shard of the pods, one task per pod; every request is answered exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, assert_never

import msgspec

from ipc.host.clock import Clock
from ipc.host.log.entry import Subject, about
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.eventloop.batch import BatchGate
from ipc.link.eventloop.tasks import BackgroundTasks, first_of, note_failure
from ipc.link.messages.base import EventReport, ProfileTaken, PullEnded, PullProgress, Ready, Shutdown, TakeProfile
from ipc.link.messages.pod_worker import (
    AbandonPull,
    BeginningKept,
    CancelSync,
    ContainerBegins,
    ContainersChanged,
    ObjectsRead,
    PodWork,
    PodWorkerCommand,
    PodWorkerReport,
    ProbePod,
    PullImage,
    StopProbing,
    SyncDone,
    SyncPod,
    WorkType,
)
from ipc.link.messages.sync_error import SyncError
from ipc.link.shm.board import Board, WorkerRowWriter
from ipc.link.shm.trace import TRACER
from ipc.link.wire.boot import ChildContext
from ipc.link.wire.channel import UNSENDABLE, Channel, ChannelClosed
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.images.manager import ImageManager
from workers.images.pull_records import PullRecords
from workers.images.pull_requests import PullRequests
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.runtime import CallCounts, Runtime
from workers.kuberuntime.context import NodeConfig, SyncContext
from workers.kuberuntime.pause_pod import freeze_pod
from workers.kuberuntime.sync_pod import sync_pod
from workers.kuberuntime.sync_terminating import sync_terminated, sync_terminating
from workers.lifecycle.handlers import HandlerRunner
from workers.lifecycle.http_hook import HttpHookClient
from workers.podhttp.pod_network import Dialer
from workers.prober.manager import Attempt, PodProber, ProberReport
from workers.profiling import ProfileRequests
from workers.specgen.seccomp import SeccompSettings
from workers.sync.attribution import on_behalf_of
from workers.sync.beginnings import Beginnings
from workers.sync.mutation_limiter import MutationLimiter, OwnSlots, Slots
from workers.sync.pod_row import read_view
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncEnded, SyncRecord
from workers.sync.removal_gate import RemovalGate
from workers.sync.run import PodRef, SyncRun, SyncServices
from workers.userns.unshare import Unshare
from workers.volumemanager.plugins.volume_host import VolumeHost

MAX_PODS_IN_FLIGHT: Final = 5000
"""Most syncs under way in one worker: as many as maxPods allows, because a sync that waits for its image for half an
hour must not keep another pod from being stopped. The runtime has its own, smaller bounds for its calls."""
OBJECTS_DEADLINE_S: Final = 60.0
"""How long a sync waits for what its pod refers to, in seconds. The cluster's part of the node worker gives up after
ten, so this is for a node worker that is away."""
ALONE_S: Final = 0.005
"""How long the first sync of a pod waits for that of another one, in seconds."""
DOWN_PER_PERMIT: Final = 1.5
"""Pods that are down or on their way, for each call that removes one: the next are ready when a permit is free, and
none waits so long for its removal that Podman cleans up after it."""
SHUTDOWN_WAIT_S: Final = 5.0
"""How long syncs in flight get to finish their current step, in seconds."""

Link = Channel[PodWorkerReport, PodWorkerCommand]

log = logging.getLogger(__name__)


async def run_pod_worker(
    context: ChildContext,
    channel: Link,
    runtime: Runtime,
    clock: Clock,
    row_writer: WorkerRowWriter,
    dialer: Dialer,
    attempt: Attempt,
    rng: random.Random,
    unshare: Unshare,
) -> None:
    """Serve until Shutdown or the end of the link. ``attempt`` carries out probes, ``rng`` spreads them; ``unshare`` is
    closed at the end."""
    worker = PodWorker(context, channel, runtime, clock, row_writer, dialer, attempt, rng, unshare)
    await channel.send(Ready(pid=os.getpid()))
    try:
        async for command in channel:
            if isinstance(command, Shutdown):
                break
            if isinstance(command, TakeProfile):
                worker.profiles.take(command)
            else:
                await worker.handle(command)
    finally:
        await worker.finish()


class _Flight(msgspec.Struct, frozen=True):
    request: SyncPod
    cancel: asyncio.Event
    objects: asyncio.Future[ConfigObjects]
    """For a sync that waits for them."""
    task: asyncio.Task[None]


class PodWorker:
    """The syncs in flight, at most one per pod, and the probes."""

    def __init__(
        self,
        context: ChildContext,
        channel: Link,
        runtime: Runtime,
        clock: Clock,
        row_writer: WorkerRowWriter,
        dialer: Dialer,
        attempt: Attempt,
        rng: random.Random,
        unshare: Unshare,
    ) -> None:
        self._board = context.board
        self._channel = channel
        self._row_writer = row_writer
        self._in_flight: dict[str, _Flight] = {}
        self._tasks = BackgroundTasks()
        self._capacity = asyncio.Semaphore(MAX_PODS_IN_FLIGHT)
        self._beginnings = BatchGate(ALONE_S)
        self._counted = CallCounts()
        self._pulls = PullRequests(self._send)
        self._beginnings_kept = Beginnings(self._send)
        self.profiles = ProfileRequests(self._send)
        self._prober = PodProber(context.board, clock, attempt, self._send, rng, lambda: context.board.host_ips)
        services = SyncServices(
            runtime=runtime,
            clock=clock,
            mutations=MutationLimiter(_slots(context)),
            removals=RemovalGate(math.ceil(DOWN_PER_PERMIT * context.settings.max_mutations)),
            order=itertools.count(),
            report=self._send,
            step=row_writer.step,
            keep_beginning=self._beginnings_kept.keep if context.settings.podman_forgets else None,
        )
        images = ImageManager(runtime, clock, PullRecords(context.settings.pulled_images_dir), self._pulls.pull)
        self._context = _sync_context(context, services, images, dialer, unshare)

    async def handle(self, command: PodWork) -> None:
        """Handle a command, attributed to its pod on the board. A pull belongs to no single pod."""
        if isinstance(command, PullProgress | PullEnded | BeginningKept):
            await self.dispatch(command)
        else:
            await on_behalf_of(command.uid, self.dispatch(command), self._row_writer.current_pod)

    async def dispatch(self, command: PodWork) -> None:
        match command:
            case SyncPod(uid=uid) if uid in self._in_flight:
                await self._refuse(command)
            case SyncPod():
                self._start(command)
            case ObjectsRead():
                self._take_objects(command)
            case CancelSync():
                self._cancel(command)
            case PullProgress():
                self._pulls.progressed(command)
            case PullEnded():
                self._pulls.ended(command)
            case BeginningKept():
                self._beginnings_kept.kept(command)
            case ProbePod():
                await self._prober.probe(command)
            case ContainersChanged():
                await self._prober.containers_changed(command)
            case StopProbing(uid=uid):
                self._prober.stop(uid)
            case _:
                assert_never(command)

    def _take_objects(self, command: ObjectsRead) -> None:
        flight = self._in_flight.get(command.uid)
        if flight is not None and flight.request.generation == command.generation and not flight.objects.done():
            flight.objects.set_result(command.objects)

    def _cancel(self, command: CancelSync) -> None:
        flight = self._in_flight.get(command.uid)
        if flight is not None and flight.request.generation == command.generation:
            flight.cancel.set()

    async def finish(self) -> None:
        """Cancel every sync, which ends at its next step; one that does not in time is abandoned. Probes end at
        once."""
        for flight in self._in_flight.values():
            flight.cancel.set()
        self.profiles.close()
        await self._prober.close()
        tasks = {flight.task for flight in self._in_flight.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=SHUTDOWN_WAIT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._context.services.mutations.close()
        self._context.services.removals.close()
        self._context.services.files.close()
        self._context.volumes.unshare.close()

    def _start(self, request: SyncPod) -> None:
        cancel = asyncio.Event()
        objects: asyncio.Future[ConfigObjects] = asyncio.get_running_loop().create_future()
        task = self._tasks.spawn(self._serve(request, cancel, objects), name=f"sync of pod {request.uid}")
        self._in_flight[request.uid] = _Flight(request, cancel, objects, task)

    async def _refuse(self, request: SyncPod) -> None:
        """Refuse a second sync of a pod: there is one at a time, so the master has lost count."""
        message = f"pod {request.uid} has a sync in flight"
        log.error("protocol error: %s, and another one was asked for", message)
        await self._send(_refused(self._context, request, message))

    async def _serve(self, request: SyncPod, cancel: asyncio.Event, objects: asyncio.Future[ConfigObjects]) -> None:
        TRACER.of(request.uid)
        about(_subject(request))
        try:
            async with self._capacity:
                with TRACER.span(f"sync: {request.kind}"):
                    done = await self._answer(request, cancel, objects)
        finally:
            del self._in_flight[request.uid]
        self._row_writer.step("")
        self._count(done)
        try:
            await self._send(done)
        except UNSENDABLE as error:
            note_failure(f"answer to the sync of pod {request.uid}", error)
            await self._send(_refused(self._context, request, f"its answer cannot be sent: {error}"))

    async def _answer(
        self, request: SyncPod, cancel: asyncio.Event, objects: asyncio.Future[ConfigObjects]
    ) -> SyncDone:
        """The answer of the sync, whatever happens before it and in it: the master waits for one."""
        try:
            await self._begin(request)
            if request.awaits:
                request = await _with_objects(request, cancel, objects)
        except Exception as error:
            note_failure(f"begin of the sync of pod {request.uid}", error)
            return _refused(self._context, request, f"{type(error).__name__}: {error}")
        return await answer(self._context, self._board, request, cancel)

    async def _begin(self, request: SyncPod) -> None:
        """Pods that come together all begin before Podman is asked for anything: it makes a few at a time, and takes
        the CPUs for them, which the way of the others needs."""
        if request.generation == 1 and request.kind is WorkType.SYNC:
            self._beginnings.came()
            await self._beginnings.over()

    async def _send(
        self, message: SyncDone | PullImage | AbandonPull | ContainerBegins | ProberReport | ProfileTaken
    ) -> None:
        with contextlib.suppress(ChannelClosed):  # the master is gone: the loop ends by itself
            await self._channel.send(message, lazy=isinstance(message, EventReport))

    def _count(self, done: SyncDone) -> None:
        counts = self._context.services.runtime.counts()
        self._row_writer.count(
            syncs=1,
            sync_errors=int(bool(done.error)),
            runtime_calls=counts.calls - self._counted.calls,
            runtime_errors=counts.errors - self._counted.errors,
        )
        self._counted = counts


async def _with_objects(request: SyncPod, cancel: asyncio.Event, objects: asyncio.Future[ConfigObjects]) -> SyncPod:
    """The request with what its pod refers to, as it is without when the sync is cancelled or this takes too long
    (pkg/kubelet/volumemanager, WaitForAttachAndMount: upstream's sync waits there)."""
    with TRACER.span("waits for what it refers to"), contextlib.suppress(TimeoutError):
        async with asyncio.timeout(OBJECTS_DEADLINE_S):
            await first_of(asyncio.shield(objects), cancel.wait())
    return msgspec.structs.replace(request, objects=objects.result()) if objects.done() else request


def _subject(request: SyncPod) -> Subject:
    metadata = request.pod.metadata if request.pod is not None else ObjectMeta()
    return Subject(namespace=metadata.namespace, name=metadata.name, uid=request.uid)


async def answer(context: SyncContext, board: Board, request: SyncPod, cancel: asyncio.Event) -> SyncDone:
    """Run one whole sync. Any error in it becomes a part of its answer."""
    record, clock = SyncRecord(request), context.services.clock
    began_at = clock.now().mono
    ended = await _sync(context, board, request, record, cancel)
    now = clock.now()
    return msgspec.structs.replace(record.done(now.wall, ended), took_s=now.mono - began_at)


async def _sync(
    context: SyncContext, board: Board, request: SyncPod, record: SyncRecord, cancel: asyncio.Event
) -> SyncEnded | None:
    """Why the sync ended before its last step; None when it did not."""
    try:
        status = read_view(request, board)
        if status is None:
            raise SyncEnded(SyncError.STALE_VIEW, "no observation as new as this sync needs")
        spec = request.pod.spec if request.pod is not None else None
        run = SyncRun(context.services, _pod_ref(request, status), record, cancel, spec)
        await _SYNCS[request.kind](context, run, request, status)
    except SyncEnded as ended:
        return ended
    except Exception as error:
        note_failure(f"sync of pod {request.uid}", error)
        return SyncEnded(SyncError.INTERNAL, f"{type(error).__name__}: {error}")
    return None


def _refused(context: SyncContext, request: SyncPod, message: str) -> SyncDone:
    """An answer without any results."""
    return SyncRecord(request).done(context.services.clock.now().wall, SyncEnded(SyncError.INTERNAL, message))


async def _sync_pod(context: SyncContext, run: SyncRun, request: SyncPod, status: RuntimePodStatus) -> None:
    if request.pod is None:
        raise SyncEnded(SyncError.INTERNAL, "a pod without a manifest can only be stopped and removed")
    if request.freeze:
        await freeze_pod(run, status, request.freeze)
        return
    of = PodSnapshot(
        pod=request.pod,
        objects=request.objects,
        status=status,
        devices=request.devices,
        known_devices=request.known_devices,
        active_since=request.active_since,
    )
    await sync_pod(context, run, request, of)


Sync = Callable[[SyncContext, SyncRun, SyncPod, RuntimePodStatus], Awaitable[None]]
"""Raises SyncEnded."""

_SYNCS: Final[Mapping[WorkType, Sync]] = {
    WorkType.SYNC: _sync_pod,
    WorkType.TERMINATING: sync_terminating,
    WorkType.TERMINATED: sync_terminated,
}


def _slots(context: ChildContext) -> Slots:
    if context.mutation_slots is None:
        return OwnSlots(context.settings.max_mutations)
    return context.mutation_slots.member(context.slot)


def _sync_context(
    context: ChildContext, services: SyncServices, images: ImageManager, dialer: Dialer, unshare: Unshare
) -> SyncContext:
    settings = context.settings
    ownership = Ownership(instance=settings.instance, key=settings.label_key)

    def host_ips() -> tuple[str, ...]:
        return context.board.host_ips

    return SyncContext(
        services=services,
        images=images,
        handlers=HandlerRunner(
            http=HttpHookClient(dialer=dialer, ownership=ownership, host_ips=lambda: context.board.host_ips)
        ),
        volumes=VolumeHost(
            pods_dir=settings.pods_dir,
            memory_dir=settings.memory_dir,
            instance=settings.instance,
            node=settings.node,
            unshare=unshare,
        ),
        node=NodeConfig(
            ownership=ownership,
            pod_logs_dir=settings.pod_logs_dir,
            name=settings.node_name,
            host_ips=host_ips,
            resources=settings.node,
            network=settings.network,
            seccomp=SeccompSettings(
                default=settings.seccomp_default,
                profiles_dir=settings.seccomp_dir,
                runtime_default=settings.seccomp_profile,
            ),
            limits=crash_loop_limits(settings.max_container_restart_period_s),
            runtimes=settings.runtimes,
            gc=settings.gc,
            keep_until_pulled=settings.keep_until_images_pulled,
        ),
    )


def _pod_ref(request: SyncPod, status: RuntimePodStatus) -> PodRef:
    """From the manifest, or for an orphan from its labels."""
    if request.pod is not None:
        return PodRef(request.pod.metadata.namespace, request.pod.metadata.name, request.uid)
    return PodRef(status.namespace, status.name, request.uid)
