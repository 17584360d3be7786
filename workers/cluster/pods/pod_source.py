"""The server's pods of this node on their way to the master (pkg/kubelet/config/apiserver.go).

A pod goes up at once, and its sync waits in its worker until everything that it refers to was read once. Those of the
first list go up when it was: the set of an agent before this one counts until then. What this node cannot run stays
here: its status and an event say why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ipc.host.clock import Clock, rfc3339
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.base import EventReport
from ipc.link.messages.cluster import PodsListed, PodStated, PodWithdrawn, ReferencesRead
from ipc.link.shm.trace import TRACER
from workers.cluster.pods.desired_pod import Refusal, desired_pod
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.status_manager import StatusManager
from workers.cluster.pods.wanted_status import OWNED_CONDITIONS, SCHEDULED

NEED_DEADLINE_S: Final = 30.0
"""After which a pod goes up without what it refers to, in seconds: whatever is missing then makes its sync fail, in
words, until it comes."""

OWN_CONDITIONS: Final = OWNED_CONDITIONS | {SCHEDULED, "DisruptionTarget"}
"""Types of conditions that tell the master nothing."""

log = logging.getLogger(__name__)

Statement = PodStated | ReferencesRead | PodWithdrawn | PodsListed | EventReport


class Needs(Protocol):
    """Needs of pods before they run here, which the cluster meets."""

    def fits(self, pod: Pod) -> bool:
        """Whether the Node as it is known now is one for that pod."""

    async def see_node(self) -> None:
        """Read the Node once more: a scheduler may have seen labels that the watch has not told yet (predicate.go,
        generalFilter)."""

    def follow(self, pod: Pod, *, is_new: bool) -> bool:
        """Begin to read what a pod refers to; whether all of it was read. ``is_new``: the node has not decided yet
        whether it takes the pod, and what only a pod that runs may ask for waits for that."""

    async def need(self, pod: Pod) -> None:
        """Return when all that a followed pod refers to was read once."""

    def forget(self, uid: str) -> None:
        """The server has that pod no longer."""


class Mirrors(Protocol):
    """Receiver of the server's mirror pods."""

    def known(self, uid: str, pod: KnownPod | None) -> None:
        """The server has that mirror; None: no longer."""

    def listed(self) -> None:
        """All mirrors that the server has are known."""


class PodSource:
    """`workers.kubeclient.protocol.ReflectorSink` of the node's pods."""

    def __init__(
        self,
        statuses: StatusManager,
        mirrors: Mirrors,
        needs: Needs,
        clock: Clock,
        tell: Callable[[Statement], None],
        wake: Callable[[], None],
        comes: Callable[[], None] = lambda: None,
    ) -> None:
        """``tell`` sends to the master, in order. ``wake``: a status may have to be written. ``comes``: a pod is on its
        way to the master."""
        self._statuses = statuses
        self._mirrors = mirrors
        self._needs = needs
        self._clock = clock
        self._tell = tell
        self._wake = wake
        self._comes = comes
        self._known: dict[str, KnownPod] = {}
        self._desired: dict[str, KnownPod] = {}
        """The newest version of each pod that the master has, or that was refused."""
        self._refused: set[str] = set()
        self._bringing: dict[str, asyncio.Task[None]] = {}
        self._was_listed = False
        self._tasks = BackgroundTasks()

    # --- ReflectorSink -------------------------------------------------------------------------------------------

    def replaced(self, items: Sequence[KnownPod]) -> None:
        """See `ReflectorSink`."""
        there = {pod.uid: pod for pod in items}
        for pod in [pod for uid, pod in self._known.items() if uid not in there]:
            self.deleted(pod)
        self._statuses.replaced(items)
        for pod in items:
            self._take(pod)
        self._mirrors.listed()
        self._wake()
        if not self._was_listed:
            self._was_listed = True
            self._tasks.spawn(self._tell_listed(tuple(self._bringing.values())), name="end of the list of pods")

    def changed(self, item: KnownPod) -> None:
        """See `ReflectorSink`."""
        TRACER.instant("the server tells of it", item.uid)
        self._statuses.changed(item)
        self._take(item)
        self._wake()

    def deleted(self, item: KnownPod) -> None:
        """See `ReflectorSink`."""
        self._known.pop(item.uid, None)
        if item.is_mirror:
            self._mirrors.known(item.uid, None)
        if (task := self._bringing.pop(item.uid, None)) is not None:
            task.cancel()
        if self._desired.pop(item.uid, None) is not None and item.uid not in self._refused:
            self._tell(PodWithdrawn(uid=item.uid))
        self._refused.discard(item.uid)
        self._needs.forget(item.uid)
        self._statuses.deleted(item.uid)

    def close(self) -> None:
        """End what is under way."""
        self._tasks.cancel()

    # --- on the way ----------------------------------------------------------------------------------------------

    def _take(self, pod: KnownPod) -> None:
        self._known[pod.uid] = pod
        if pod.is_mirror:
            self._mirrors.known(pod.uid, pod)
        elif pod.uid not in self._bringing and self._is_news(pod) and not self._is_over(pod):
            self._bring(pod)

    def _is_news(self, pod: KnownPod) -> bool:
        """Whether the master has to know of it: of a status only what others have put there, or that it is final."""
        before = self._desired.get(pod.uid)
        return before is None or not before.means_the_same(pod) or _said_by_others(before) != _said_by_others(pod)

    def _is_over(self, pod: KnownPod) -> bool:
        """Whether nothing of a deleted pod is left here, so that it only waits for its last DELETE: an edit of it must
        not begin its end anew."""
        return pod.is_deleted and self._statuses.is_released(pod.uid)

    def _bring(self, pod: KnownPod) -> None:
        """State a pod that this node can run: at once, but for what an agent before this one may have run. That goes up
        when all that it needs is there."""
        if (found := self._runnable(pod)) is None:
            return
        self._comes()
        is_new = self._was_listed and pod.uid not in self._desired
        fits = self._needs.fits(found)
        if fits and self._goes_up(pod, found, is_new=is_new):
            return
        task = self._bring_later(pod, found, is_new=is_new, fits=fits)
        self._bringing[pod.uid] = self._tasks.spawn(task, name="pod of the cluster")

    def _goes_up(self, pod: KnownPod, found: Pod, *, is_new: bool) -> bool:
        """Follow the pod, and state one that waits for nothing, or is new; whether all that it needs is there."""
        is_read = self._needs.follow(found, is_new=is_new)
        if is_read or is_new:
            self._state(pod, found, awaits=not is_read)
        return is_read

    async def _bring_later(self, pod: KnownPod, found: Pod, *, is_new: bool, fits: bool) -> None:
        """Bring a pod when what it waits for is there. By then it may be another version: that one is brought next."""
        uid = pod.uid
        try:
            if fits or not await self._goes_up_when_seen(pod, found, is_new=is_new):
                await self._read(pod, found, is_up=is_new)
        finally:
            if self._bringing.get(uid) is asyncio.current_task():
                del self._bringing[uid]
        newest = self._known.get(uid)
        if newest is not None and newest is not pod and self._is_news(newest):
            self._bring(newest)

    async def _goes_up_when_seen(self, pod: KnownPod, found: Pod, *, is_new: bool) -> bool:
        """Read the Node once more, and let the master decide, whatever its labels are then."""
        try:
            async with asyncio.timeout(NEED_DEADLINE_S):
                await self._needs.see_node()
        except TimeoutError:
            log.warning("pod %s/%s comes before the Node was read again", *_name(pod))
        return self._goes_up(pod, found, is_new=is_new)

    async def _read(self, pod: KnownPod, found: Pod, *, is_up: bool) -> None:
        """``is_up``: the pod is known to the master."""
        try:
            async with asyncio.timeout(NEED_DEADLINE_S):
                await self._needs.need(found)
        except TimeoutError:
            log.warning("pod %s/%s begins before all that it refers to was read", *_name(pod))
        if pod.uid not in self._known:
            return
        if is_up:
            self._tell(ReferencesRead(uid=pod.uid))
        else:
            self._state(pod, found)

    def _runnable(self, pod: KnownPod) -> Pod | None:
        """The pod as the master gets it. None for one that is refused, which is said."""
        found = desired_pod(pod)
        if not isinstance(found, Refusal):
            return found
        if pod.status_value().get("phase") in TERMINAL_PHASES:
            self._refused.add(pod.uid)
            self._desired[pod.uid] = pod
            self._statuses.released(pod.uid)  # an agent before this one has said so
        else:
            self._refuse(pod, found)
        return None

    def _state(self, pod: KnownPod, found: Pod, *, awaits: bool = False) -> None:
        self._desired[pod.uid] = pod
        TRACER.instant("goes up", pod.uid)
        self._tell(PodStated(pod=found, awaits=awaits))

    async def _tell_listed(self, pods: Sequence[asyncio.Task[None]]) -> None:
        """When the last pod of the list went up."""
        await asyncio.gather(*pods, return_exceptions=True)
        self._tell(PodsListed())

    def _refuse(self, pod: KnownPod, refusal: Refusal) -> None:
        """rejectPod (pkg/kubelet/kubelet.go). What the master has of it already stays as it is."""
        namespace, name = _name(pod)
        self._tell(
            EventReport(
                uid=pod.uid,
                namespace=namespace,
                name=name,
                type=refusal.reason.type,
                reason=refusal.reason.reason,
                message=refusal.message,
                kind="Pod",
            )
        )
        is_running = pod.uid in self._desired and pod.uid not in self._refused
        self._desired[pod.uid] = pod  # not told again, until it is another one
        if is_running:
            return
        self._refused.add(pod.uid)
        now = self._clock.now()
        status = {
            "phase": "Failed",
            "reason": refusal.reason.reason,
            "message": f"Pod was rejected: {refusal.message}",
            "startTime": rfc3339(now.wall),
            "observedGeneration": pod.metadata.generation,
        }
        self._statuses.report_plain(pod.uid, status, now.mono)
        self._statuses.released(pod.uid)
        self._wake()


def _name(pod: KnownPod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _said_by_others(pod: KnownPod) -> tuple[object, ...]:
    """The part of a status that tells the master something: conditions of others, and that the phase is final."""
    status = pod.status_value()
    foreign = {
        condition["type"]: condition.get("status")
        for condition in status.get("conditions") or ()
        if condition["type"] not in OWN_CONDITIONS
    }
    return foreign, status.get("phase") in TERMINAL_PHASES
