"""The generic PLEG observes the pods of the whole node: those that are requested, and by itself those that change.

Mirrors pkg/kubelet/pleg/generic.go. Different on purpose: a relist every ten seconds instead of one, and every five
minutes when the last ones found nothing new (as upstream's evented PLEG), because ends of processes (pidfds) and
Podman's events (`workers.pleg.evented`) request observations of single pods; and a requested pod is observed alone,
unless so many are due that one relist is cheaper.

While nothing happens a relist is two calls (the containers, and the pods that have none), whatever the number of pods,
and between relists Podman is asked for a sign of life.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Never

import msgspec

from ipc.host.clock import Clock
from ipc.host.log.entry import Subject, about
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.eventloop.tasks import BackgroundTasks, note_failure
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.node_worker import (
    EVERY_REQUEST,
    Observation,
    ObservationFailed,
    Observe,
    Observed,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
)
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.shm.trace import TRACER
from ipc.link.wire.boot import ChildContext
from workers.containers.exit_watch import RECORD_HOLDS_S
from workers.containers.inspect_file import InspectFile
from workers.containers.known_containers import KnownContainers
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.look import decode_looks
from workers.kubecontainer.overrides import is_in_motion
from workers.kubecontainer.runtime import ErrorKind, Runtime, RuntimeCallError, unexpected
from workers.network.network_programs import NetworkCheck
from workers.pleg.metering import PLEGMeter
from workers.pleg.observe_queue import ObserveQueue
from workers.pleg.observer import PODS_PER_YIELD, Observer, Relisting
from workers.pleg.orphan_collector import OrphanCollector
from workers.pleg.publisher import Publisher, within_one_message
from workers.pleg.relist import Listing, is_list_cheaper
from workers.pleg.relist_schedule import RelistSchedule
from workers.pleg.request_numbers import RequestNumbers
from workers.pleg.runtime_state import RuntimeState

MAX_ROUND_PODS: Final = 16
"""Pods observed in one round: later requests do not wait long, and no call waits long for a connection."""
ROUND_S: Final = 5.0
"""Deadline of one round, in seconds. Pods that take longer are observed again, later."""
REMOVAL_S: Final = 1.0
"""Delay of an observation for which a removal that is under way is the likely reason, in seconds: the end of that sync
says that everything is gone, and looks meanwhile wait for Podman's locks."""
QUEUED: Final = "waits to be observed"
"""A span: from the request of an observation to its begin."""
Report = EventReport | ObservationFailed | Observed | Relisted | RuntimeHealth | ServiceSilent
Send = Callable[[Report], Awaitable[None]]

log = logging.getLogger(__name__)


class GenericPLEG:
    """Takes requests and hints of changes, observes, and reports. One round or relist at a time."""

    def __init__(
        self,
        context: ChildContext,
        runtime: Runtime,
        clock: Clock,
        row_writer: WorkerRowWriter,
        rng: random.Random,
        *,
        orphans: OrphanCollector,
        send: Send,
        on_change: Callable[[RuntimePodStatus], None],
    ) -> None:
        """``on_change`` gets every status that differs from the pod's last one."""
        settings = context.settings
        self._relist_period_s = settings.relist_period_s
        self._node_name = settings.node_name
        self._runtime = runtime
        self._clock = clock
        self._row_writer = row_writer
        self._orphans = orphans
        self._send = send
        self._on_change = on_change
        self.published = Publisher(context.board)
        self._noted: asyncio.Queue[str] = asyncio.Queue()
        """Uids of pods of which a monitor has recorded the end of a container."""
        self._inspect_file = InspectFile(settings.inspect_file)
        self.known = KnownContainers(
            runtime,
            clock,
            ownership=Ownership(instance=settings.instance, key=settings.label_key),
            pod_logs_dir=settings.pod_logs_dir,
            pods_dir=settings.pods_dir,
            on_exit=self._exited,
            on_record=self._noted.put_nowait,
            on_forgotten=self._forgotten,
            on_change=self._inspect_file.note_change,
        )
        self.observer = Observer(runtime, clock, self.known, self._inspect_file.read())
        self._queue = ObserveQueue()
        self._schedule = RelistSchedule(settings.relist_period_s, settings.quiet_relist_period_s, rng)
        self._listings = BackgroundTasks()
        """One at the most, which the relist awaits."""
        self._numbers = RequestNumbers()
        self._listing_s = 0.0
        """How long the newest listing of everything took."""
        self._network = NetworkCheck(settings.network.mode, clock, runtime.network_programs)
        self._runtime_state = RuntimeState(settings.runtime_request_timeout_s, clock.now().mono)
        self._has_relisted = False
        """A relist has succeeded since the stream of events last broke. At first Podman may be about to start."""
        self._wake = asyncio.Event()
        self._meter = PLEGMeter(runtime, clock, row_writer)

    def close(self) -> None:
        """Stop watching."""
        self.observer.close()

    # --- requests ---

    def track(self, uid: str, row: int) -> None:
        """Publish that pod on that row of the board. Raises IndexError."""
        self.published.track(uid, row)

    def untrack(self, uid: str) -> None:
        """Nobody wants that pod to be observed any more."""
        self.published.untrack(uid)
        self._queue.drop(uid)
        self._numbers.forget(uid)

    def take_request(self, request: Observe) -> None:
        """Observe the pods that the master asks for; its doubts of them hold until then."""
        for uid, effects in request.effects.items():
            looks = decode_looks(effects.looks)
            self.observer.touched.add(uid, effects.touched, removed=effects.removed, looks=looks)
            if effects.unsure:
                self.observer.touched.suspect(uid, self._now())
                self._schedule.resync(self._now())
        for uid in request.uids:
            self._numbers.ask(uid, request.number)
            self.request(uid)

    def request(self, uid: str, at: float = 0.0) -> None:
        """Request an observation of that pod at ``at`` (monotonic seconds), or as soon as possible, after the round
        under way."""
        self._queue.request(uid, at)
        self._wake.set()
        if not at:
            TRACER.begin(QUEUED, uid)

    def _exited(self, uid: str) -> None:
        """A process of that pod has ended, and how is not known."""
        self.request(uid, self._now() + REMOVAL_S if self.known.has_ended(uid) else 0.0)

    def request_relist(self) -> None:
        """Relist as soon as possible."""
        self._schedule.request()
        self._wake.set()

    def lost_events(self) -> bool:
        """Podman's events of a while are lost, and Podman may be: relist more often. False when no relist has succeeded
        since the last time."""
        has_relisted, self._has_relisted = self._has_relisted, False
        self._orphans.podman_was_lost()
        self._resync()
        return has_relisted

    def _resync(self) -> None:
        self._schedule.resync(self._now())
        self._wake.set()

    async def keep_inspects(self) -> Never:
        """See `InspectFile.keep`."""
        await self._inspect_file.keep(self.known.settled)

    async def await_recovery(self, answers: asyncio.Event) -> None:
        """Relist at once whenever Podman was found to answer again. Runs for ever."""
        while True:
            await answers.wait()
            answers.clear()
            self._schedule.podman_is_back()
            self._wake.set()

    async def publish_recorded_ends(self) -> None:
        """Report ends of containers that their monitors have recorded, past the round under way. Runs for ever.

        A successor need not wait until Podman shows the end, too: the pod is observed later, unless the end of its next
        sync requests that.
        """
        while True:
            uid = await self._noted.get()
            TRACER.instant("the monitor has recorded an end", uid)
            try:
                await self.known.read_messages(uid)
                newest = self.published.newest(uid)
                status = self.known.with_records(newest) if newest is not None else None
            except Exception as error:
                note_failure(f"end of a container of pod {uid}", error)
                status = None
            if status is None or status == newest:
                self.request(uid)
            else:
                self.request(uid, self._now() + RECORD_HOLDS_S)
                await self._send(Observed(observations=(self._record(status, self._numbers.answered(uid)),)))

    def _forgotten(self, uid: str) -> None:
        """A process of that pod lives on, and Podman does not know its container any more."""
        log.warning("Podman has forgotten a container of pod %s whose process runs", uid)
        self._orphans.podman_was_lost()
        self._resync()
        self.request_relist()

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
            self._meter.iterated()

    def _is_list_cheaper(self, due: Sequence[str]) -> bool:
        return is_list_cheaper(sum(map(self.observer.needs_list, due)), len(self.known.inspected), self._listing_s)

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
        if self.known.has_unwatched or self.known.unknown_containers.is_list_due:
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
        listing = self.observer.needs_list(uid)
        answers = EVERY_REQUEST if listing else self._numbers.asked(uid)
        began = self._now()
        try:
            with TRACER.span("observes"):
                status = await self.observer.observe(uid, listing=listing)
            self._meter.observed(self._now() - began)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                await self._observation_failed(uid, str(error))
                return
            self._retry(uid, str(error))
            if not self._schedule.is_down:
                await self._fail(error)
            return
        if is_in_motion(status):
            self.request(uid, self._now() + self._relist_period_s)
        if self.known.relies_on_records(uid):
            self.request(uid, self._now() + RECORD_HOLDS_S)
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
        await self._send_each(self._runtime_state.answered(version, await self._network.problem(version)))

    async def _relist(self) -> None:
        """Observe everything; requests that wait are answered by it."""
        self._row_writer.step("relisting")
        waiting = self._queue.take_all()
        began = self._now()
        self._meter.relist_begun(began)
        self._schedule.begun(began)
        try:
            version = self._runtime_state.version or await self._runtime.version()
            listing = await self._list()
            relisting = await self.observer.relist(listing)
        except RuntimeCallError as error:
            await self._relist_failed(waiting, error)
            return
        except Exception as error:
            note_failure("a relist", error)
            await self._relist_failed(waiting, unexpected(error, "relist"))
            return
        now = self._now()
        self._meter.relisted(now - began)
        self._schedule.answered(now)
        self._has_relisted = True
        self._orphans.relisted()
        await self._send_each(self._runtime_state.relisted(now, version, await self._network.problem(version)))
        await self._report_unknown_containers()
        await self._answer(waiting, relisting)

    async def _list(self) -> Listing:
        """Everything that Podman has. Pods that are requested meanwhile do not wait: it may take a minute."""
        listing = self._listings.spawn(
            self.observer.list_all(), name="listing of all containers", expected=(Exception,)
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
        if news := self.known.unknown_containers.take_report():
            log.warning("%s", news)
            wall = self._clock.now().wall
            await self._send(node_event(self._node_name, event_reasons.UNKNOWN_CONTAINER, news, wall))

    async def _relist_failed(self, waiting: Sequence[str], error: RuntimeCallError) -> None:
        self._queue.request_again(waiting)
        await self._fail(error)

    async def _answer(self, waiting: Sequence[str], relisting: Relisting) -> None:
        """Send Observed for the pods that were requested, and Relisted. Failed pods are reported, and soon observed
        again."""
        tracked, blank = self.published.tracked, self.published.blank()
        uids = sorted({*waiting, *tracked, *relisting.statuses} - relisting.failures.keys() - relisting.passed_over)
        seen, unpublished = await self._record_each(relisting, uids)
        failed = {**{uid: str(error) for uid, error in relisting.failures.items()}, **unpublished}
        self.published.retain(relisting.statuses.keys() | failed.keys() | relisting.passed_over)
        orphans = relisting.statuses.keys() - tracked
        news = [uid for uid in seen if uid in orphans or (seen[uid].changed and uid in tracked)]
        for uid in sorted(failed):
            await self._observation_failed(uid, failed[uid])
        answers = [seen[uid] for uid in seen if uid in waiting]
        if answers:
            await self._send(Observed(observations=within_one_message(answers)))
        changed = {uid for uid in news if seen[uid].changed}
        # Something in a pod that had nothing was made by one of our workers: the end of its sync, or its death, tells.
        surprises = changed - set(waiting) - blank
        self._schedule.plan(
            self._now(),
            started_at=relisting.started_at,
            is_surprise=bool(relisting.failures or surprises),
            is_settled=self._is_settled(relisting),
            again_in_s=self._queue.retry_delay_s(failed),
        )
        reported = within_one_message(seen[uid] for uid in news)
        unseen = failed.keys() | {uid for uid in relisting.passed_over if self._queue.is_requested(uid)}
        for uid in self.known.relying_on_records():
            self.request(uid, self._now() + RECORD_HOLDS_S)
        await self._send(Relisted(started_at=relisting.started_at, changed=reported, unseen=tuple(sorted(unseen))))

    def _is_settled(self, relisting: Relisting) -> bool:
        """Whether no pod is between two states, or may still show consequences of Podman's death."""
        in_motion = any(is_in_motion(status) for status in relisting.statuses.values())
        return not (in_motion or self.known.has_unwatched or self._orphans.is_due)

    # --- results ---

    def _record(self, status: RuntimePodStatus, answers: int) -> Observation:
        observation = self.published.record(status)
        if observation.changed:
            self._on_change(status)
        self._queue.observed(status.uid)
        self._numbers.answer(status.uid, answers)
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
                status = self.known.with_records(_status_in(relisting, uid))
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
        failure = self._queue.failed(uid, why, self._now())
        level = logging.WARNING if failure.is_news else logging.DEBUG
        log.log(level, "cannot observe pod %s (%d times in a row): %s", uid, failure.times, why)

    async def _fail(self, error: RuntimeCallError) -> None:
        """Note that Podman as a whole does not answer."""
        now = self._now()
        self._schedule.failed(now)
        self._orphans.podman_was_lost()
        await self._send_each(self._runtime_state.failed(now, error))

    async def _send_each(self, reports: Iterable[Report]) -> None:
        for report in reports:
            await self._send(report)

    def _now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now().mono


def _status_in(relisting: Relisting, uid: str) -> RuntimePodStatus:
    """Status of a pod by a relist; an empty one of a pod that does not exist."""
    return relisting.statuses.get(uid) or RuntimePodStatus(uid=uid, observed_at=relisting.started_at)
