"""Observation for the whole node: answers the master's requests, and finds by itself what nobody asked about.

Mirrors the generic PLEG (pkg/kubelet/pleg/generic.go). Different on purpose: a relist every ten seconds instead of one,
and every five minutes when the last ones found nothing new (as upstream's evented PLEG, pkg/kubelet/pleg/evented.go),
because ends of processes (pidfds) and Podman's events mark single pods to be looked at; and a pod that is asked for is
looked at alone, unless so many wait that one relist is cheaper.

While nothing happens a relist is two calls (the containers, and the pods that have none), whatever the number of pods,
and between relists Podman is asked for a sign of life.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
from collections.abc import Mapping, Sequence, Set
from typing import Final, assert_never

from ipc.board import WorkerRowWriter
from ipc.boot import ChildContext
from ipc.channel import Channel, ChannelClosed
from ipc.clock import Clock
from ipc.messages import (
    CancelPull,
    CollectLogs,
    LookFailed,
    NodeWorkerCommand,
    NodeWorkerReport,
    Observation,
    Observe,
    Observed,
    Ready,
    Relist,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
    Shutdown,
    StartPull,
    Track,
    Untrack,
)
from ipc.runtime import RuntimePodStatus
from workers import labels
from workers.doubts import is_in_motion
from workers.exit_watch import raise_file_limit
from workers.garbage import Garbage
from workers.image_puller import ImagePuller
from workers.log_gc import LogGarbage
from workers.observer import Observer, Relisting
from workers.published import Published, within_one_message
from workers.relist import is_list_cheaper, relist_period_s
from workers.runtime import CallCounts, ErrorKind, Runtime, RuntimeCallError, RuntimeEvent

RELIST_JITTER: Final = 0.2
"""The relist period varies by this part of it, so that several agents of one host do not march in step."""
LIVENESS_PERIOD_S: Final = 30.0
"""Longest time without a call of Podman, in seconds, before it is pinged (0.4 ms): one that hangs while nothing happens
is missed before somebody needs it."""
RETRY_INITIAL_S: Final = 0.25
"""Delay before a failed look is repeated, in seconds; it doubles."""
RETRY_MAX_S: Final = 10.0
"""Longest such delay, in seconds."""
MAX_ROUND_PODS: Final = 16
"""Pods looked at in one round: what is asked meanwhile has not long to wait, and no call waits long for its turn."""
ROUND_S: Final = 5.0
"""How long the pods of one round are waited for, in seconds. Those that take longer are looked at again, later."""
HINTS: Final[Mapping[str, float]] = {
    "died": 0.0,
    "remove": 0.0,
    "start": 0.5,
    "restart": 0.5,
    "pause": 0.5,
    "unpause": 0.5,
}
"""Events after which a pod looks different, and how long to wait before looking, in seconds. What was started was most
likely started by us, and the end of that sync brings a look of its own, which makes this one unnecessary."""

STUCK_SLACK_S: Final = 30.0
"""How much longer than runtimeRequestTimeout no relist may have succeeded before Podman counts as stuck, in seconds:
whoever works on something large has had the time for it."""
KNOWN_END_S: Final = 0.5
"""The same for a container's end that was seen by its pidfd 100 ms ago, in seconds: its successor is being started."""

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
    """Serve until the master says so or is gone. No error of the runtime ends it, a bug does.

    ``answers`` is set by who finds that Podman answers again.
    """
    raise_file_limit()
    worker = NodeWorker(context, channel, runtime, clock, row_writer, rng or random.Random())
    await channel.send(Ready(pid=os.getpid()))
    try:
        async with asyncio.TaskGroup() as group:
            lives = (worker.look, worker.listen, worker.garbage.collect, worker.log_garbage.collect)
            work = [group.create_task(life()) for life in lives]
            work.append(group.create_task(worker.heed(answers or asyncio.Event())))
            await worker.serve()
            for task in work:
                task.cancel()
    finally:
        await worker.close()


def retry_delay_s(failures: int) -> float:
    """Seconds until the next try after so many failures in a row (1 or more)."""
    return min(RETRY_INITIAL_S * 2.0 ** min(failures - 1, 16), RETRY_MAX_S)


class NodeWorker:
    """What waits to be looked at, and when. One look at a time; the answers are in `Published`."""

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
        self._quiet_relist_period_s = settings.quiet_relist_period_s
        self._channel = channel
        self._runtime = runtime
        self._clock = clock
        self._row_writer = row_writer
        self._rng = rng
        self._published = Published(context.board)
        self._observer = Observer(
            runtime,
            clock,
            instance=settings.instance,
            pod_logs_dir=settings.pod_logs_dir,
            pods_dir=settings.pods_dir,
            on_exit=self._ask,
            on_forgotten=self._forgotten,
        )
        self._puller = ImagePuller(runtime, clock, self._send)
        self.garbage = Garbage(runtime, settings.pod_logs_dir)
        self.log_garbage = LogGarbage(
            settings.pod_logs_dir,
            settings.pods_dir,
            settings.node_name,
            is_tracked=lambda uid: uid in self._published.tracked,
            report=self._send,
        )
        self._due: dict[str, float] = {}
        """When each pod that waits is to be looked at, in monotonic seconds; 0.0 is at once. Oldest request first."""
        self._failures: dict[str, int] = {}
        """How often in a row a pod could not be looked at."""
        self._relist_at = 0.0
        """When the next relist is due, in monotonic seconds; infinite while one is under way."""
        self._quiet_relists = 0
        """How many in a row that were due found nothing new, and nobody had a reason to doubt."""
        self._ping_at = 0.0
        """When Podman is to be asked for a sign of life, in monotonic seconds."""
        self._stuck_s = settings.runtime_request_timeout_s + STUCK_SLACK_S
        self._answered_at = clock.now().mono
        """When a relist has last succeeded, or it was told that none does, in monotonic seconds."""
        self._relist_failures = 0
        """How often in a row a relist failed: while it is not 0, Podman counts as down and single pods wait."""
        self._health = RuntimeHealth(healthy=False)
        self._is_break_news = False
        """A relist has succeeded since the stream of events last broke. At first Podman may be about to start."""
        self._wake = asyncio.Event()
        self._counted = CallCounts()

    async def close(self) -> None:
        """Watch and pull nothing any more."""
        self._observer.close()
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
                case Observe(uids=uids):
                    for uid in uids:
                        self._ask(uid)
                case Relist():
                    self._ask_relist()
                case StartPull(reference=reference):
                    await self._puller.start(reference)
                case CancelPull(reference=reference):
                    self._puller.cancel(reference)
                case CollectLogs():
                    self.log_garbage.ask(command)
                case Shutdown():
                    return
                case _:
                    assert_never(command)

    def _ask(self, uid: str, at: float = 0.0) -> None:
        """Look at that pod then, or as soon as possible, after whatever look is under way."""
        self._due[uid] = min(at, self._due.get(uid, at))
        self._wake.set()

    def _ask_relist(self) -> None:
        """Relist as soon as possible, after one that is under way; while Podman is down, when the next try is due."""
        if self._relist_at == math.inf or not self._relist_failures:
            self._relist_at = 0.0
            self._wake.set()

    async def heed(self, answers: asyncio.Event) -> None:
        """Relist at once, for ever, whenever Podman was found to answer again: nobody waits for the next try."""
        while True:
            await answers.wait()
            answers.clear()
            if self._relist_failures:
                self._doubt()
                self._relist_at = 0.0
                self._wake.set()

    def _doubt(self) -> None:
        """Something may have happened without a word: relist soon, and more often."""
        self._quiet_relists = 0
        self._relist_within(self._relist_period_s)

    def _relist_within(self, seconds: float) -> None:
        """At the latest. One that is under way is not the one that is meant."""
        if self._relist_at != math.inf:
            self._relist_at = min(self._relist_at, self._clock.now().mono + seconds)
            self._wake.set()

    # --- hints ---

    async def listen(self) -> None:
        """Follow Podman's events for ever. What happened while nobody listened is found by a relist."""
        failures = 0
        while True:
            try:
                async for event in self._runtime.events():
                    failures = 0
                    self._hint(event)
                why = "it ended"
            except RuntimeCallError as error:
                why = str(error)
            failures += 1
            level = logging.INFO if self._is_break_news else logging.DEBUG
            self._is_break_news = False
            log.log(level, "Podman's stream of events broke: %s", why)
            self.garbage.podman_was_lost()
            self._doubt()
            await asyncio.sleep(retry_delay_s(failures))
            self._ask_relist()

    def _hint(self, event: RuntimeEvent) -> None:
        uid, delay_s, now = event.labels.get(labels.POD_UID, ""), HINTS.get(event.action), self._clock.now()
        if event.action == "died" and self._observer.knows_end(event.container_id):
            delay_s = KNOWN_END_S
        if uid and delay_s is not None and not self._published.is_older(uid, event.time, now):
            self._ask(uid, now.mono + delay_s if delay_s else 0.0)

    def _forgotten(self, uid: str) -> None:
        """A process of that pod lives on, and Podman does not know its container any more."""
        log.warning("Podman has forgotten a container of pod %s whose process runs", uid)
        self.garbage.podman_was_lost()
        self._doubt()
        self._ask_relist()

    # --- looking ---

    async def look(self) -> None:
        """Look after look for ever: at everything when that is due, else at the pods that wait; else sleep."""
        while True:
            now = self._clock.now().mono
            due = [] if self._relist_failures else [uid for uid, at in self._due.items() if at <= now]
            if now >= self._relist_at or is_list_cheaper(len(due), self._observer.containers):
                await self._relist()
            elif due:
                await self._round(due[:MAX_ROUND_PODS])
            elif now >= self._ping_at and not self._relist_failures:
                await self._ping()
            else:
                await self._sleep(now)
            self._count()

    async def _sleep(self, now: float) -> None:
        """Until something is due or asked for."""
        self._row_writer.step("waiting")
        self._wake.clear()
        wake_at = min((self._relist_at, *(() if self._relist_failures else (self._ping_at, *self._due.values()))))
        try:
            async with asyncio.timeout(max(0.0, wake_at - now)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _round(self, uids: Sequence[str]) -> None:
        """Look at each of these pods. Each is answered when it is done: a slow one delays no answer but its own."""
        self._row_writer.step(f"looking at {len(uids)} pods")
        for uid in uids:
            del self._due[uid]
        looks = {asyncio.create_task(self._observe(uid)): uid for uid in uids}
        try:
            done, late = await asyncio.wait(looks, timeout=ROUND_S)
        finally:
            for look in looks:
                look.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for look in late:
            self._retry(looks[look], f"not within {ROUND_S} s")
        for look in done:
            look.result()
        if self._observer.has_blind_spots:
            self._doubt()

    async def _observe(self, uid: str) -> None:
        try:
            status = await self._observer.observe(uid)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                await self._fail_look(uid, str(error))
                return
            self._retry(uid, str(error))
            if not self._relist_failures:
                await self._fail_relist(error)
            return
        if is_in_motion(status):
            self._ask(uid, self._clock.now().mono + self._relist_period_s)
        await self._send(Observed(observations=(self._record(status),)))

    async def _ping(self) -> None:
        """Does it live? What it is, too: another version may have taken its place."""
        self._row_writer.step("asking for a sign of life")
        self._ping_at = self._clock.now().mono + LIVENESS_PERIOD_S
        try:
            version = await self._runtime.version()
        except RuntimeCallError as error:
            await self._fail_relist(error)
            return
        await self._report_health(RuntimeHealth(healthy=True, version=version))

    async def _relist(self) -> None:
        """Look at everything; whoever waits is answered with it."""
        self._row_writer.step("relisting")
        waiting = tuple(self._due)
        self._due.clear()
        was_due = 0.0 < self._relist_at <= self._clock.now().mono
        self._relist_at = math.inf
        try:
            version = self._health.version or await self._runtime.version()
            relisting = await self._observer.relist()
        except RuntimeCallError as error:
            for uid in waiting:
                self._due.setdefault(uid, 0.0)
            await self._fail_relist(error)
            return
        self._relist_failures, self._answered_at, self._is_break_news = 0, self._clock.now().mono, True
        self._ping_at = self._answered_at + LIVENESS_PERIOD_S
        self.garbage.relisted()
        await self._report_health(RuntimeHealth(healthy=True, version=version))
        await self._answer(waiting, relisting, was_due=was_due)

    async def _answer(self, waiting: Sequence[str], relisting: Relisting, *, was_due: bool) -> None:
        """Observed for those who waited, Relisted for all. What could not be looked at is told, and soon tried anew."""
        tracked, failed = self._published.tracked, relisting.failures
        uids = sorted({*waiting, *tracked, *relisting.statuses} - failed.keys())
        seen = {uid: self._record(_status_in(relisting, uid)) for uid in uids}
        self._published.retain(relisting.statuses.keys() | failed.keys())
        orphans = relisting.statuses.keys() - tracked
        news = [uid for uid in uids if uid in orphans or (seen[uid].changed and uid in tracked)]
        for uid, error in failed.items():
            await self._fail_look(uid, str(error))
        answers = [seen[uid] for uid in uids if uid in waiting]
        if answers:
            await self._send(Observed(observations=within_one_message(answers)))
        changed = {uid for uid in news if seen[uid].changed}
        if self._is_surprised(relisting, changed - set(waiting)):
            self._quiet_relists = 0
        elif was_due:
            self._quiet_relists += 1
        self._plan_relist(relisting)
        told = within_one_message(seen[uid] for uid in news)
        await self._send(Relisted(started_at=relisting.started_at, changed=told, unseen=tuple(sorted(failed))))

    def _plan_relist(self, relisting: Relisting) -> None:
        """After this one. For those that it could not look at as soon as they are tried again."""
        period_s = relist_period_s(
            self._relist_period_s, self._quiet_relist_period_s, self._quiet_relists, relisting.list_s
        )
        period_s *= self._rng.uniform(1 - RELIST_JITTER, 1 + RELIST_JITTER)
        self._relist_at = min(self._relist_at, relisting.started_at + period_s)
        if relisting.failures:
            again_in_s = max(retry_delay_s(self._failures[uid]) for uid in relisting.failures)
            self._relist_at = min(self._relist_at, self._clock.now().mono + again_in_s)

    def _is_surprised(self, relisting: Relisting, missed: Set[str]) -> bool:
        """What changed without any hint was ``missed``, what is between two states may not come to its end, and what
        Podman's death has left may not be over."""
        in_motion = any(is_in_motion(status) for status in relisting.statuses.values())
        blind = self._observer.has_blind_spots or self.garbage.is_due
        return bool(relisting.failures or in_motion or blind or missed)

    # --- results ---

    def _record(self, status: RuntimePodStatus) -> Observation:
        self._failures.pop(status.uid, None)
        return self._published.record(status)

    async def _fail_look(self, uid: str, why: str) -> None:
        """An error, not a delay; and of this pod, not of the runtime as a whole."""
        self._retry(uid, why)
        await self._send(LookFailed(uid=uid, message=why))

    def _retry(self, uid: str, why: str) -> None:
        """The request stays; it is due again after a delay, unless somebody has asked anew."""
        failures = self._failures.get(uid, 0) + 1
        self._failures[uid] = failures
        self._due.setdefault(uid, self._clock.now().mono + retry_delay_s(failures))
        level = logging.WARNING if failures == 1 else logging.DEBUG
        log.log(level, "cannot observe pod %s (%d times in a row): %s", uid, failures, why)

    async def _fail_relist(self, error: RuntimeCallError) -> None:
        self._relist_failures += 1
        self._doubt()
        self.garbage.podman_was_lost()
        self._relist_at = self._clock.now().mono + retry_delay_s(self._relist_failures)
        await self._report_health(RuntimeHealth(healthy=False, message=error.message))
        await self._tell_if_stuck(error)

    async def _tell_if_stuck(self, error: RuntimeCallError) -> None:
        """Podman takes requests, answers pings too, and lists nothing for longer than any call may take: a lock of its
        own that never comes free."""
        now = self._clock.now().mono
        silence_s = now - self._answered_at
        if error.kind is ErrorKind.TIMEOUT and silence_s >= self._stuck_s:
            self._answered_at = now
            await self._send(ServiceSilent(message=f"no relist has succeeded for {silence_s:.0f} s: {error.message}"))

    async def _report_health(self, health: RuntimeHealth) -> None:
        if health != self._health:
            self._health = health
            await self._send(health)

    async def _send(self, report: NodeWorkerReport) -> None:
        try:
            await self._channel.send(report)
        except ChannelClosed:
            log.info("the master is gone")  # `serve` ends by itself, and everything with it.

    def _count(self) -> None:
        now, before = self._runtime.counts(), self._counted
        self._counted = now
        self._row_writer.count(
            runtime_calls=now.calls - before.calls,
            runtime_errors=now.errors - before.errors,
            events_dropped=now.events_dropped - before.events_dropped,
        )


def _status_in(relisting: Relisting, uid: str) -> RuntimePodStatus:
    """What a relist says of a pod: also that it does not exist."""
    return relisting.statuses.get(uid) or RuntimePodStatus(uid=uid, observed_at=relisting.started_at)
