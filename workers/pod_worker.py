"""A shard of the pods: one task per pod runs its SyncPod; every request is answered once, whatever happens in it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, assert_never

import msgspec

from ipc.host.clock import Clock
from ipc.host.tasks import BackgroundTasks, note_failure
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.base import PullEnded, PullProgress, Ready, Shutdown
from ipc.messages.pod_worker import (
    AbandonPull,
    CancelSync,
    ContainersChanged,
    PodWorkerCommand,
    PodWorkerReport,
    ProbePod,
    PullImage,
    StopProbing,
    SyncDone,
    SyncPod,
    WorkType,
)
from ipc.shm.board import Board, WorkerRowWriter
from ipc.wire.boot import ChildContext
from ipc.wire.channel import UNSENDABLE, Channel, ChannelClosed
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.images.manager import ImageManager
from workers.images.pull_records import PullRecords
from workers.images.pull_requests import PullRequests
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.pod_row import read_view
from workers.kubecontainer.runtime import CallCounts, Runtime
from workers.kuberuntime.sync_pod import sync_pod
from workers.kuberuntime.sync_terminated import sync_terminated
from workers.kuberuntime.sync_terminating import sync_terminating
from workers.podhttp.pod_network import Dialer
from workers.prober.manager import Attempt, PodProber, ProberReport
from workers.specgen.seccomp import SeccompSettings
from workers.sync.attribution import on_behalf_of
from workers.sync.context import PodName, SyncContext, SyncEnded, SyncRun
from workers.sync.mutation_limiter import MutationLimiter, OwnSlots, Slots
from workers.userns.unshare import Unshare

MAX_PODS_IN_FLIGHT: Final = 5000
"""Syncs under way in one worker: as many as maxPods may say, because one that waits for its image for half an hour must
not keep another pod from being stopped. Most only wait, and the runtime has its own, smaller bounds for its calls."""
SHUTDOWN_WAIT_S: Final = 5.0
"""How long syncs in flight get to finish the step in hand, in seconds."""
STALE_VIEW: Final = "StaleView"
INTERNAL: Final = "Internal"

Command = SyncPod | CancelSync | PullProgress | PullEnded | ProbePod | ContainersChanged | StopProbing
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
) -> None:
    """Serve until the master says so or is gone. ``attempt`` carries out probes, ``rng`` spreads them."""
    worker = PodWorker(context, channel, runtime, clock, row_writer, dialer, attempt, rng)
    await channel.send(Ready(pid=os.getpid()))
    try:
        async for command in channel:
            if isinstance(command, Shutdown):
                break
            await worker.take(command)
    finally:
        await worker.finish()


class _Flight(msgspec.Struct, frozen=True):
    request: SyncPod
    cancel: asyncio.Event
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
    ) -> None:
        self._board = context.board
        self._channel = channel
        self._row_writer = row_writer
        self._flights: dict[str, _Flight] = {}
        self._tasks = BackgroundTasks()
        self._turn = asyncio.Semaphore(MAX_PODS_IN_FLIGHT)
        self._counted = CallCounts()
        self._pulls = PullRequests(self._send)
        self._prober = PodProber(context.board, clock, attempt, self._send, rng, lambda: context.board.host_ips)
        self._context = SyncContext(
            runtime=runtime,
            images=ImageManager(runtime, clock, PullRecords(context.settings.pulled_images_dir), self._pulls.pull),
            clock=clock,
            limits=crash_loop_limits(context.settings.max_container_restart_period_s),
            ownership=Ownership(instance=context.settings.instance, key=context.settings.label_key),
            pod_logs_dir=context.settings.pod_logs_dir,
            pods_dir=context.settings.pods_dir,
            dialer=dialer,
            memory_dir=context.settings.memory_dir,
            unshare=Unshare(podman=context.settings.podman_path),
            node_name=context.settings.node_name,
            host_ips=lambda: context.board.host_ips,
            node=context.settings.node,
            network=context.settings.network,
            seccomp=SeccompSettings(
                default=context.settings.seccomp_default, profiles_dir=context.settings.seccomp_dir
            ),
            mutations=MutationLimiter(_slots(context)),
            order=itertools.count(),
            report=self._send,
            step=row_writer.step,
            gc=context.settings.gc,
        )

    async def take(self, command: Command) -> None:
        """Obey it, and have whatever comes of it attributed to its pod. An image is no pod's alone."""
        if isinstance(command, PullProgress | PullEnded):
            await self.obey(command)
        else:
            await on_behalf_of(command.uid, self.obey(command), self._row_writer.current_pod)

    async def obey(self, command: Command) -> None:
        match command:
            case SyncPod(uid=uid) if uid in self._flights:
                await self._refuse(command)
            case SyncPod():
                self._start(command)
            case CancelSync():
                self._cancel(command)
            case PullProgress():
                self._pulls.progressed(command)
            case PullEnded():
                self._pulls.ended(command)
            case ProbePod():
                await self._prober.probe(command)
            case ContainersChanged():
                await self._prober.containers_changed(command)
            case StopProbing(uid=uid):
                self._prober.stop(uid)
            case _:
                assert_never(command)

    def _cancel(self, command: CancelSync) -> None:
        flight = self._flights.get(command.uid)
        if flight is not None and flight.request.generation == command.generation:
            flight.cancel.set()

    async def finish(self) -> None:
        """Every sync ends at its next step; one that does not in time is abandoned. Probes end at once."""
        for flight in self._flights.values():
            flight.cancel.set()
        await self._prober.close()
        tasks = {flight.task for flight in self._flights.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=SHUTDOWN_WAIT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._context.mutations.close()
        self._context.files.close()

    def _start(self, request: SyncPod) -> None:
        cancel = asyncio.Event()
        task = self._tasks.spawn(self._serve(request, cancel), name=f"sync of pod {request.uid}")
        self._flights[request.uid] = _Flight(request, cancel, task)

    async def _refuse(self, request: SyncPod) -> None:
        """One actor per pod: whoever sent a second sync has lost count, and to act on it would make that worse."""
        message = f"pod {request.uid} has a sync in flight"
        log.error("protocol error: %s, and another one was asked for", message)
        await self._send(_refused(self._context, request, message))

    async def _serve(self, request: SyncPod, cancel: asyncio.Event) -> None:
        try:
            async with self._turn:
                done = await answer(self._context, self._board, request, cancel)
        finally:
            del self._flights[request.uid]
        self._row_writer.step("")
        self._count(done)
        try:
            await self._send(done)
        except UNSENDABLE as error:
            note_failure(f"answer to the sync of pod {request.uid}", error)
            await self._send(_refused(self._context, request, f"its answer cannot be sent: {error}"))

    async def _send(self, message: SyncDone | PullImage | AbandonPull | ProberReport) -> None:
        with contextlib.suppress(ChannelClosed):  # nobody is left to be told; the loop ends by the same fact
            await self._channel.send(message)

    def _count(self, done: SyncDone) -> None:
        counts = self._context.runtime.counts()
        self._row_writer.count(
            syncs=1,
            sync_errors=int(bool(done.error)),
            runtime_calls=counts.calls - self._counted.calls,
            runtime_errors=counts.errors - self._counted.errors,
        )
        self._counted = counts


async def answer(context: SyncContext, board: Board, request: SyncPod, cancel: asyncio.Event) -> SyncDone:
    """Run one whole sync. Whatever goes wrong in it becomes a part of its answer."""
    run = SyncRun(context, request, _pod_name(request, None), cancel)
    try:
        status = read_view(request, board)
        if status is None:
            raise SyncEnded(STALE_VIEW, "no observation as new as this sync needs")
        run.pod, run.view = _pod_name(request, status), status
        await _SYNCS[request.kind](run, status)
    except SyncEnded as ended:
        return run.done(ended)
    except Exception as error:
        log.exception("sync of pod %s failed", request.uid)
        return run.done(SyncEnded(INTERNAL, f"{type(error).__name__}: {error}"))
    return run.done()


def _refused(context: SyncContext, request: SyncPod, message: str) -> SyncDone:
    """An answer without any results."""
    run = SyncRun(context, request, PodName("", "", request.uid), asyncio.Event())
    return run.done(SyncEnded(INTERNAL, message))


async def _sync_pod(run: SyncRun, status: RuntimePodStatus) -> None:
    if run.request.pod is None:
        raise SyncEnded(INTERNAL, "a pod without a manifest can only be stopped and removed")
    await sync_pod(run, run.request.pod, status)


_SYNCS: Final[Mapping[WorkType, Callable[[SyncRun, RuntimePodStatus], Awaitable[None]]]] = {
    WorkType.SYNC: _sync_pod,
    WorkType.TERMINATING: sync_terminating,
    WorkType.TERMINATED: sync_terminated,
}


def _slots(context: ChildContext) -> Slots:
    if context.mutation_slots is None:
        return OwnSlots(context.settings.max_mutations)
    return context.mutation_slots.member(context.slot)


def _pod_name(request: SyncPod, status: RuntimePodStatus | None) -> PodName:
    """From the manifest, or for an orphan from its labels."""
    if request.pod is not None:
        return PodName(request.pod.metadata.namespace, request.pod.metadata.name, request.uid)
    return PodName(status.namespace, status.name, request.uid) if status else PodName("", "", request.uid)
