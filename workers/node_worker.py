"""The node worker observes the pods of the whole node: those that the master asks for, and by itself those that change.

Mirrors the generic PLEG (pkg/kubelet/pleg/generic.go). Different on purpose: a relist every ten seconds instead of one,
and every five minutes when the last ones found nothing new (as upstream's evented PLEG, pkg/kubelet/pleg/evented.go),
because ends of processes (pidfds) and Podman's events request observations of single pods; and a requested pod is
observed alone, unless so many are due that one relist is cheaper.

While nothing happens a relist is two calls (the containers, and the pods that have none), whatever the number of pods,
and between relists Podman is asked for a sign of life.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Never, assert_never

import msgspec

from ipc.host.clock import Clock
from ipc.host.tasks import BackgroundTasks, note_failure, restarted
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.log.entry import Subject, about
from ipc.messages import event_reasons
from ipc.messages.base import Ready, Shutdown, TakeProfile, node_event
from ipc.messages.node_worker import (
    EVERY_REQUEST,
    CancelPull,
    CollectImages,
    CollectLogs,
    DeleteVolume,
    NodeWorkerCommand,
    NodeWorkerReport,
    Observation,
    ObservationFailed,
    Observe,
    Observed,
    ObserveNode,
    Relist,
    Relisted,
    SetLogRotation,
    StartPull,
    Track,
    Untrack,
)
from ipc.metrics import kubelet as metrics
from ipc.shm.board import WorkerRowWriter
from ipc.shm.metric_cells import METERS
from ipc.shm.trace import TRACER
from ipc.wire.boot import ChildContext, WorkerSettings
from ipc.wire.channel import Channel, ChannelClosed
from workers.eviction.node_pressure import NodePressure
from workers.eviction.pod_usage import Directories
from workers.images.collector import ImageCollector, NodeView
from workers.images.image_records import ImageRecords
from workers.images.pull_records import PullRecords
from workers.images.puller import ImagePuller
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.labels import read_uid
from workers.kubecontainer.look import decode_looks
from workers.kubecontainer.overrides import is_in_motion
from workers.kubecontainer.runtime import CallCounts, ErrorKind, Runtime, RuntimeCallError, RuntimeEvent, unexpected
from workers.logs.container_log_manager import ContainerLogManager
from workers.logs.gc import LogGarbageCollector
from workers.pleg.exit_watch import RECORD_HOLDS_S, raise_file_limit
from workers.pleg.inspect_file import InspectFile
from workers.pleg.observe_queue import ObserveQueue
from workers.pleg.observer import PODS_PER_YIELD, Observer, Relisting
from workers.pleg.orphan_collector import OrphanCollector
from workers.pleg.publisher import Publisher, within_one_message
from workers.pleg.relist import Listing, is_list_cheaper
from workers.pleg.relist_schedule import RelistSchedule, retry_delay_s
from workers.pleg.runtime_state import RuntimeState
from workers.profiling import ProfileRequests
from workers.stats.housekeeping import Housekeeping
from workers.stats.targets import PodTarget, targets_of
from workers.tracing.export import export_traces
from workers.userns.unshare import Unshare
from workers.volumemanager.deletion import VolumeDeleter

if TYPE_CHECKING:
    from workers.stats.collector import Collector

MAX_ROUND_PODS: Final = 16
"""Pods observed in one round: later requests do not wait long, and no call waits long for a connection."""
ROUND_S: Final = 5.0
"""Deadline of one round, in seconds. Pods that take longer are observed again, later."""
REMOVAL_S: Final = 1.0
"""Delay of an observation for which a removal that is under way is the likely reason, in seconds: the end of that sync
says that everything is gone, and looks meanwhile wait for Podman's locks."""
HINTS: Final[Mapping[str, float]] = {
    "died": 0.0,
    "remove": REMOVAL_S,
    "start": 0.5,
    "restart": 0.5,
    "pause": 0.5,
    "unpause": 0.5,
}
"""Podman's events after which a pod is observed, and the delay before that, in seconds. A container that starts was
most likely started by a sync, whose end requests an observation of its own and makes this one unnecessary; so is one
that is removed."""
_LAST_EVENTS: Final = frozenset({"died", "remove"})
"""Of a container that nobody knows they say nothing: it is gone, or an earlier event is of it."""
Link = Channel[NodeWorkerReport, NodeWorkerCommand]

log = logging.getLogger(__name__)


async def run_node_worker(
    context: ChildContext,
    channel: Link,
    runtime: Runtime,
    clock: Clock,
    row_writer: WorkerRowWriter,
    rng: random.Random | None = None,
    answers: asyncio.Event | None = None,
) -> None:
    """Serve until Shutdown or the end of the link. No error of the runtime ends it.

    ``answers`` is set when Podman is found to answer again (`workers.libpod.health`).
    """
    raise_file_limit()
    worker = NodeWorker(context, channel, runtime, clock, row_writer, rng or random.Random())
    await channel.send(Ready(pid=os.getpid()))
    try:
        async with asyncio.TaskGroup() as group:
            loops: Mapping[str, Callable[[], Awaitable[None]]] = {
                "observations": worker.observe,
                "Podman's events": worker.watch_events,
                "monitors' notes": worker.publish_recorded_ends,
                "leftover processes": worker.orphans.collect,
                "statistics": worker.statistics.run,
                "signals of eviction": worker.node_pressure.run,
                "directories of pods that are gone": worker.log_gc.collect,
                "volumes of claims that are gone": worker.deleted_volumes.run,
                "containers' logs": worker.logs.run,
                "unused images": worker.images.collect,
                "inspects for a later process": worker.keep_inspects,
                "export of traces": functools.partial(
                    export_traces,
                    context.board.trace,
                    context.settings.tracing,
                    context.settings.instance,
                    context.settings.node_name,
                    clock,
                ),
                "Podman's return": functools.partial(worker.await_recovery, answers or asyncio.Event()),
            }
            work = [group.create_task(restarted(loop, name=name), name=name) for name, loop in loops.items()]
            await worker.serve()
            for task in work:
                task.cancel()
    finally:
        await worker.close()


QUEUED: Final = "waits to be observed"
"""A span: from the request of an observation to its begin."""


class NodeWorker:
    """Takes the master's commands and hints of changes, observes, and reports. One round or relist at a time."""

    def __init__(
        self,
        context: ChildContext,
        channel: Link,
        runtime: Runtime,
        clock: Clock,
        row_writer: WorkerRowWriter,
        rng: random.Random,
    ) -> None:
        settings = context.settings
        self._relist_period_s = settings.relist_period_s
        self._node_name = settings.node_name
        self._channel = channel
        self._runtime = runtime
        self._clock = clock
        self._row_writer = row_writer
        self._published = Publisher(context.board)
        self._noted: asyncio.Queue[str] = asyncio.Queue()
        """Uids of pods of which a monitor has recorded the end of a container."""
        self._inspect_file = InspectFile(settings.inspect_file)
        self._observer = Observer(
            runtime,
            clock,
            ownership=Ownership(instance=settings.instance, key=settings.label_key),
            pod_logs_dir=settings.pod_logs_dir,
            pods_dir=settings.pods_dir,
            on_exit=self._exited,
            on_record=self._noted.put_nowait,
            on_forgotten=self._forgotten,
            remembered=self._inspect_file.read(),
            on_inspect=self._inspect_file.note_change,
        )
        self._profiles = ProfileRequests(self._send)
        pull_records = PullRecords(settings.pulled_images_dir)
        image_records = ImageRecords(settings.image_records_file, clock)
        self._puller = ImagePuller(runtime, clock, pull_records, image_records, self._send)
        self.images = ImageCollector(
            runtime,
            clock,
            image_records,
            pull_records,
            NodeView(
                containers=self._observer.all_inspected,
                pulling=lambda: self._puller.references,
            ),
            settings.node_name,
            self._send,
        )
        self.orphans = OrphanCollector(runtime, settings.pod_logs_dir)
        self.statistics = Housekeeping(
            context.board.statistics, clock, rng, self._targets, functools.partial(_make_collector, settings, clock)
        )
        unshare = Unshare(podman=settings.podman_path)
        self.node_pressure = NodePressure(
            settings.thresholds,
            Directories(pods=settings.pods_dir, logs=settings.pod_logs_dir),
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
            is_tracked=lambda uid: uid in self._published.tracked,
            report=self._send,
            unshare=unshare,
        )
        self.deleted_volumes = VolumeDeleter(self._send, unshare)
        self.logs = ContainerLogManager(settings.pod_logs_dir, settings.log_rotation, self._monitor_of, clock)
        self._queue = ObserveQueue()
        self._schedule = RelistSchedule(settings.relist_period_s, settings.quiet_relist_period_s, rng)
        self._listings = BackgroundTasks()
        """One at the most, which the relist awaits."""
        self._numbers: dict[str, int] = {}
        """By uid: of the newest request for that pod."""
        self._answered: dict[str, int] = {}
        """By uid: the number that the newest observation answers."""
        self._listing_s = 0.0
        """How long the newest listing of everything took."""
        self._runtime_state = RuntimeState(settings.runtime_request_timeout_s, clock.now().mono)
        self._has_relisted = False
        """A relist has succeeded since the stream of events last broke. At first Podman may be about to start."""
        self._wake = asyncio.Event()
        self._counted = CallCounts()
        self._storage = ""
        """See `_image_root`."""
        self._relisted_at = 0.0
        """When the last relist began, monotonic seconds; 0.0 before the first."""

    async def close(self) -> None:
        """Stop watching and pulling."""
        self._observer.close()
        await self.logs.close()
        self._profiles.close()
        await self._puller.close()

    # --- commands ---

    async def serve(self) -> None:
        """Take the master's commands until Shutdown or the end of the link."""
        async for command in self._channel:
            match command:
                case Track(uid=uid, row=row):
                    self._published.track(uid, row)
                case Untrack(uid=uid):
                    self._published.untrack(uid)
                    self._queue.drop(uid)
                    self._observer.touched.forget(uid)
                    self._numbers.pop(uid, None)
                    self._answered.pop(uid, None)
                case Observe():
                    self._take_request(command)
                case Relist():
                    self._request_relist()
                case StartPull():
                    await self._puller.start(command.pull)
                case CancelPull():
                    self._puller.cancel(command.pull)
                case CollectLogs():
                    self.log_gc.ask(command)
                case DeleteVolume():
                    self.deleted_volumes.ask(command)
                case ObserveNode():
                    self.node_pressure.ask(command)
                case SetLogRotation(policy=policy):
                    self.logs.set_policy(policy)
                case TakeProfile():
                    self._profiles.take(command)
                case CollectImages():
                    await self.images.ask(command)
                case Shutdown():
                    return
                case _:
                    assert_never(command)

    def _take_request(self, request: Observe) -> None:
        for uid, references in request.touched.items():
            self._observer.touched.add(uid, references, removed=request.removed.get(uid, ()))
        for uid, looks in request.looks.items():
            self._observer.touched.looked(uid, decode_looks(looks))
        for uid in request.unsure:
            self._observer.touched.suspect(uid, self._now())
        if request.unsure:
            self._schedule.resync(self._now())
        for uid in request.uids:
            self._numbers[uid] = request.number
            self._request(uid)

    def _request(self, uid: str, at: float = 0.0) -> None:
        """Request an observation of that pod at ``at`` (monotonic seconds), or as soon as possible, after the round
        under way."""
        self._queue.request(uid, at)
        self._wake.set()
        if not at:
            TRACER.begin(QUEUED, uid)

    def _exited(self, uid: str) -> None:
        """A process of that pod has ended, and how is not known."""
        self._request(uid, self._now() + REMOVAL_S if self._observer.has_ended(uid) else 0.0)

    def _request_relist(self) -> None:
        self._schedule.request()
        self._wake.set()

    def _resync(self) -> None:
        self._schedule.resync(self._now())
        self._wake.set()

    async def keep_inspects(self) -> Never:
        """See `InspectFile.keep`."""
        await self._inspect_file.keep(self._observer.settled)

    async def await_recovery(self, answers: asyncio.Event) -> None:
        """Relist at once whenever Podman was found to answer again. Runs for ever."""
        while True:
            await answers.wait()
            answers.clear()
            self._schedule.podman_is_back()
            self._wake.set()

    def _targets(self) -> Sequence[PodTarget]:
        """Pods of which statistics are collected."""
        return tuple(targets_of(self._published.statuses, self._observer.inspected))

    def _image_root(self) -> str:
        """A directory of Podman's storage, as the layer of a container tells; empty while there was none."""
        if not self._storage:
            layers = (each.layer for pod in self._targets() for each in pod.containers)
            self._storage = next((str(Path(layer).parents[2]) for layer in layers if layer), "")
        return self._storage

    def _monitor_of(self, container_id: str) -> int:
        found = self._observer.inspected(container_id)
        return found.conmon_pid if found is not None else 0

    # --- hints ---

    async def watch_events(self) -> None:
        """Follow Podman's events for ever. A relist finds what happened while the stream was broken."""
        failures = 0
        while True:
            try:
                async for event in self._runtime.events():
                    failures = 0
                    self._hint(event)
                why = "it ended"
            except RuntimeCallError as error:
                why = str(error)
            except Exception as error:
                note_failure("an event of Podman's", error)
                why = f"unexpected {type(error).__name__}"
            failures += 1
            METERS.counter(metrics.EVENT_STREAM_ERRORS).inc()
            level = logging.INFO if self._has_relisted else logging.DEBUG
            self._has_relisted = False
            log.log(level, "Podman's stream of events broke: %s", why)
            self.orphans.podman_was_lost()
            self._resync()
            await asyncio.sleep(retry_delay_s(failures))
            self._request_relist()

    def _hint(self, event: RuntimeEvent) -> None:
        if event.container_id in self._observer.unknown_containers:
            return
        uid, delay_s, now = read_uid(event.labels), HINTS.get(event.action), self._clock.now()
        if event.action == "died" and self._observer.knows_end(event.container_id):
            return
        if not uid or delay_s is None or self._observer.has_inspected_since(event.container_id, event.time):
            return
        if event.action == "died" and self._observer.has_ended(uid):
            delay_s = REMOVAL_S
        if event.action in _LAST_EVENTS and not self._observer.knows(event.container_id):
            return
        self._observer.touched.hint(uid, event.container_id, event.time)
        self._request(uid, now.mono + delay_s if delay_s else 0.0)

    async def publish_recorded_ends(self) -> None:
        """Report ends of containers that their monitors have recorded, past the round under way. Runs for ever.

        A successor need not wait until Podman shows the end, too: the pod is observed later, unless the end of its next
        sync requests that.
        """
        while True:
            uid = await self._noted.get()
            TRACER.instant("the monitor has recorded an end", uid)
            newest = self._published.newest(uid)
            try:
                status = self._observer.with_records(newest) if newest is not None else None
            except Exception as error:
                note_failure(f"end of a container of pod {uid}", error)
                status = None
            if status is None or status == newest:
                self._request(uid)
            else:
                self._request(uid, self._now() + RECORD_HOLDS_S)
                await self._send(Observed(observations=(self._record(status, self._answered.get(uid, 0)),)))

    def _forgotten(self, uid: str) -> None:
        """A process of that pod lives on, and Podman does not know its container any more."""
        log.warning("Podman has forgotten a container of pod %s whose process runs", uid)
        self.orphans.podman_was_lost()
        self._resync()
        self._request_relist()

    # --- observing ---

    async def observe(self) -> None:
        """Observe for ever: relist when that is due, else observe the pods that are due, else ping or sleep."""
        while True:
            now = self._now()
            due = [] if self._schedule.is_down else self._queue.due(now)
            if self._schedule.is_relist_due(now) or self._is_list_cheaper(due):
                await self._relist()
            elif due:
                await self._round(due[:MAX_ROUND_PODS])
            elif self._schedule.is_ping_due(now):
                await self._ping()
            else:
                self._row_writer.step("waiting")
                waits_until = math.inf if self._schedule.is_down else self._queue.next_at
                await self._sleep(min(self._schedule.next_at, waits_until) - now)
            self._count()

    def _is_list_cheaper(self, due: Sequence[str]) -> bool:
        return is_list_cheaper(sum(map(self._observer.needs_list, due)), self._observer.containers, self._listing_s)

    async def _sleep(self, seconds: float) -> None:
        """Wait until something is requested, so long at the most."""
        self._wake.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds) if seconds < math.inf else None):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _round(self, uids: Sequence[str]) -> None:
        """Observe each of these pods, and report each when it is done: a slow one delays no report but its own."""
        self._row_writer.step(f"observing {len(uids)} pods")
        self._queue.take(uids)
        late = dict.fromkeys(uids)
        try:
            async with asyncio.timeout(ROUND_S), asyncio.TaskGroup() as group:
                for uid in uids:
                    group.create_task(self._observe_one(uid, late), name=f"observation of pod {uid}")
        except TimeoutError:
            for uid in late:
                self._retry(uid, f"not within {ROUND_S} s")
        if self._observer.has_unwatched:
            self._resync()

    async def _observe_one(self, uid: str, late: dict[str, None]) -> None:
        """An error is that pod's alone. Removes the pod from ``late`` in the end."""
        try:
            await self._observe(uid)
        except Exception as error:
            await self._observation_failed(uid, self._unexpected(uid, error))
        del late[uid]

    async def _observe(self, uid: str) -> None:
        TRACER.end(QUEUED, uid)
        TRACER.of(uid)
        about(Subject(uid=uid))
        listing = self._observer.needs_list(uid)
        answers = EVERY_REQUEST if listing else self._numbers.get(uid, 0)
        began = self._now()
        try:
            with TRACER.span("observes"):
                status = await self._observer.observe(uid, listing=listing)
            METERS.histogram(metrics.PLEG_POD_RELIST_DURATION).observe(self._now() - began)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                await self._observation_failed(uid, str(error))
                return
            self._retry(uid, str(error))
            if not self._schedule.is_down:
                await self._fail(error)
            return
        if is_in_motion(status):
            self._request(uid, self._now() + self._relist_period_s)
        if self._observer.relies_on_records(uid):
            self._request(uid, self._now() + RECORD_HOLDS_S)
        await self._send(Observed(observations=(self._record(status, answers),)))

    async def _ping(self) -> None:
        """Ask whether Podman answers, and of which version it is: that may have changed."""
        self._row_writer.step("pinging Podman")
        self._schedule.pinged(self._now())
        try:
            version = await self._runtime.version()
        except RuntimeCallError as error:
            await self._fail(error)
            return
        await self._send_each(self._runtime_state.answered(version))

    async def _relist(self) -> None:
        """Observe everything; requests that wait are answered by it."""
        self._row_writer.step("relisting")
        waiting = self._queue.take_all()
        began = self._now()
        self._count_relist(began)
        self._schedule.begun(began)
        try:
            version = self._runtime_state.version or await self._runtime.version()
            listing = await self._list()
            relisting = await self._observer.relist(listing)
        except RuntimeCallError as error:
            await self._relist_failed(waiting, error)
            return
        except Exception as error:
            note_failure("a relist", error)
            await self._relist_failed(waiting, unexpected(error, "relist"))
            return
        now = self._now()
        METERS.histogram(metrics.PLEG_RELIST_DURATION).observe(now - began)
        self._schedule.answered(now)
        self._has_relisted = True
        self.orphans.relisted()
        await self._send_each(self._runtime_state.relisted(now, version))
        await self._report_unknown_containers()
        await self._answer(waiting, relisting)

    async def _list(self) -> Listing:
        """Everything that Podman has. Pods that are requested meanwhile do not wait: it may take a minute."""
        listing = self._listings.spawn(
            self._observer.list_all(), name="listing of all containers", expected=(Exception,)
        )
        listing.add_done_callback(lambda _: self._wake.set())
        try:
            while not listing.done():
                now = self._now()
                due = [] if self._schedule.is_down else self._queue.due(now)
                if due and not self._is_list_cheaper(due):
                    await self._round(due[:MAX_ROUND_PODS])
                    self._row_writer.step("relisting")
                else:
                    await self._sleep(math.inf if due or self._schedule.is_down else self._queue.next_at - now)
        finally:
            listing.cancel()
        found = await listing
        self._listing_s = found.took_s
        return found

    async def _report_unknown_containers(self) -> None:
        if news := self._observer.unknown_containers.take_report():
            log.warning("%s", news)
            wall = self._clock.now().wall
            await self._send(node_event(self._node_name, event_reasons.UNKNOWN_CONTAINER, news, wall))

    async def _relist_failed(self, waiting: Sequence[str], error: RuntimeCallError) -> None:
        self._queue.request_again(waiting)
        await self._fail(error)

    async def _answer(self, waiting: Sequence[str], relisting: Relisting) -> None:
        """Send Observed for the pods that were requested, and Relisted. Failed pods are reported, and soon observed
        again."""
        tracked = self._published.tracked
        uids = sorted({*waiting, *tracked, *relisting.statuses} - relisting.failures.keys() - relisting.passed_over)
        seen, unpublished = await self._record_each(relisting, uids)
        failed = {**{uid: str(error) for uid, error in relisting.failures.items()}, **unpublished}
        self._published.retain(relisting.statuses.keys() | failed.keys() | relisting.passed_over)
        orphans = relisting.statuses.keys() - tracked
        news = [uid for uid in seen if uid in orphans or (seen[uid].changed and uid in tracked)]
        for uid in sorted(failed):
            await self._observation_failed(uid, failed[uid])
        answers = [seen[uid] for uid in seen if uid in waiting]
        if answers:
            await self._send(Observed(observations=within_one_message(answers)))
        changed = {uid for uid in news if seen[uid].changed}
        self._schedule.plan(
            self._now(),
            started_at=relisting.started_at,
            is_surprise=bool(relisting.failures or changed - set(waiting)),
            is_settled=self._is_settled(relisting),
            again_in_s=self._queue.retry_delay_s(failed),
        )
        reported = within_one_message(seen[uid] for uid in news)
        unseen = failed.keys() | {uid for uid in relisting.passed_over if self._queue.is_requested(uid)}
        for uid in self._observer.relying_on_records():
            self._request(uid, self._now() + RECORD_HOLDS_S)
        await self._send(Relisted(started_at=relisting.started_at, changed=reported, unseen=tuple(sorted(unseen))))

    def _is_settled(self, relisting: Relisting) -> bool:
        """Whether no pod is between two states, or may still show consequences of Podman's death."""
        in_motion = any(is_in_motion(status) for status in relisting.statuses.values())
        return not (in_motion or self._observer.has_unwatched or self.orphans.is_due)

    # --- results ---

    def _record(self, status: RuntimePodStatus, answers: int) -> Observation:
        observation = self._published.record(status)
        if observation.changed:
            self.logs.follow(status)
        self._queue.observed(status.uid)
        if status.uid in self._numbers:
            self._answered[status.uid] = answers
        return msgspec.structs.replace(observation, answers=answers)

    async def _record_each(
        self, relisting: Relisting, uids: Sequence[str]
    ) -> tuple[dict[str, Observation], dict[str, str]]:
        """The observations by uid, and the errors of pods that cannot be published. Ends that were recorded since
        count."""
        seen: dict[str, Observation] = {}
        failed: dict[str, str] = {}
        for number, uid in enumerate(uids):
            if number % PODS_PER_YIELD == 0:
                await asyncio.sleep(0)
            try:
                status = self._observer.with_records(_status_in(relisting, uid))
                seen[uid] = self._record(status, EVERY_REQUEST)
            except Exception as error:
                failed[uid] = self._unexpected(uid, error)
        return seen, failed

    def _unexpected(self, uid: str, error: Exception) -> str:
        """The message of an unexpected error of this pod. The first one in a row is logged with its traceback."""
        level = logging.ERROR if not self._queue.failures(uid) else logging.DEBUG
        note_failure(f"observing pod {uid}", error, level)
        return f"unexpected {type(error).__name__}"

    async def _observation_failed(self, uid: str, why: str) -> None:
        """Report a failure of this pod, which is no failure of the runtime as a whole."""
        self._retry(uid, why)
        await self._send(ObservationFailed(uid=uid, message=why))

    def _retry(self, uid: str, why: str) -> None:
        """Keep the request: it is due again after a delay, unless the pod was requested anew."""
        failures = self._queue.failed(uid, self._now())
        level = logging.WARNING if failures == 1 else logging.DEBUG
        log.log(level, "cannot observe pod %s (%d times in a row): %s", uid, failures, why)

    async def _fail(self, error: RuntimeCallError) -> None:
        """Note that Podman as a whole does not answer."""
        now = self._now()
        self._schedule.failed(now)
        self.orphans.podman_was_lost()
        await self._send_each(self._runtime_state.failed(now, error))

    async def _send_each(self, reports: Iterable[NodeWorkerReport]) -> None:
        for report in reports:
            await self._send(report)

    async def _send(self, report: NodeWorkerReport) -> None:
        try:
            await self._channel.send(report)
        except ChannelClosed:
            log.info("the master is gone")  # `serve` ends by itself, and everything with it.

    def _now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now().mono

    def _count_relist(self, began: float) -> None:
        if self._relisted_at:
            METERS.histogram(metrics.PLEG_RELIST_INTERVAL).observe(began - self._relisted_at)
        self._relisted_at = began

    def _count(self) -> None:
        METERS.counter(metrics.PLEG_LAST_SEEN).set(self._clock.now().wall)
        now, before = self._runtime.counts(), self._counted
        self._counted = now
        self._row_writer.count(
            runtime_calls=now.calls - before.calls,
            runtime_errors=now.errors - before.errors,
        )


def _make_collector(settings: WorkerSettings, clock: Clock) -> Collector:
    """Imported when statistics are first asked for: most agents never are."""
    from workers.stats.collector import Collector
    from workers.stats.files import Places

    places = Places(
        node_name=settings.node_name,
        pods_dir=settings.pods_dir,
        pod_logs_dir=settings.pod_logs_dir,
        memory_dir=settings.memory_dir,
    )
    return Collector(places, clock, Unshare(podman=settings.podman_path))


def _status_in(relisting: Relisting, uid: str) -> RuntimePodStatus:
    """Status of a pod by a relist; an empty one of a pod that does not exist."""
    return relisting.statuses.get(uid) or RuntimePodStatus(uid=uid, observed_at=relisting.started_at)
