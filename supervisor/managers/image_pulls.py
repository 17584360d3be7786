"""Image pulls of the node: their order, and the pods that wait for them. One pull per image and logins.

Mirrors the serial and the parallel puller (pkg/kubelet/images/puller.go) and the throttled image service (helpers.go).
Different on purpose: pods that wait for one image, with the same logins or none, share its pull, which upstream leaves
to the runtime; and a pull that nobody waits for any more is broken off, where upstream lets it run to its end.

Deaths: a pull under way when the *node worker* dies ends with it, and is begun anew by the next one, at no charge to
the rate limit or to any back-off, because no registry has failed. When a *pod worker* dies its pods ask again as soon
as they are observed, so a pull that only they waited for goes on, or its end is kept for them, for `ADOPTION_S`.
"""

from __future__ import annotations

import enum
from typing import Final, assert_never

import msgspec

from ipc.k8s.podobjects.registry_login import Pull
from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.node_worker import CancelPull, StartPull
from ipc.link.messages.pod_worker import AbandonPull, PullImage
from supervisor.config.settings import Settings
from supervisor.managers.token_bucket import TokenBucket
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import Send
from supervisor.protocol.events import PullRequest, SyncTick, WorkerDown, WorkerUp

MAX_PARALLEL: Final = 100
"""Pulls under way at a time when maxParallelImagePulls says 0, which is no limit."""
MAX_PULLS: Final = 1000
"""Images that are pulled or wait for their turn; what is asked for beyond them is refused."""
ADOPTION_S: Final = 30.0
"""How long a pull whose waiters died with their worker waits for the pods to ask again, in seconds."""
PULL_FAILED: Final = "Pull"
"""`PullEnded.error` of what was refused here."""
QPS_EXCEEDED: Final = "pull QPS exceeded"
QUEUE_FULL: Final = f"more than {MAX_PULLS} images wait to be pulled"

PullEvent = PullRequest | PullProgress | PullEnded | WorkerUp | WorkerDown | SyncTick
Waiter = tuple[int, str]
"""Slot of a pod worker, uid of the pod."""


class PullLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the pulls of the node."""

    parallel: int
    per_s: int
    """Pulls begun per second; 0 is no limit."""
    burst: int


def pull_limits(settings: Settings) -> PullLimits:
    """Limits as configured: serializeImagePulls and its companions."""
    return PullLimits(
        parallel=1 if settings.serialize_image_pulls else settings.max_parallel_image_pulls or MAX_PARALLEL,
        per_s=settings.registry_pull_qps,
        burst=settings.registry_burst,
    )


class _State(enum.Enum):
    WAITING = "for its turn"
    RUNNING = "in the node worker"
    CANCELLING = "in the node worker, which was asked to break it off"
    ENDED = "while nobody waited; the result is kept"


class _Pull(msgspec.Struct):
    waiters: set[Waiter] = msgspec.field(default_factory=set)
    state: _State = _State.WAITING
    paid: bool = False
    """The rate limit was asked already."""
    deserted_at: float = 0.0
    """When the last waiter died with its worker, monotonic; only while there is none."""
    result: PullEnded | None = None

    def slots(self) -> list[int]:
        return sorted({slot for slot, _ in self.waiters})


class ImagePulls:
    """Events in as methods, commands out. The order of arrival is the order of the pulls."""

    def __init__(self, limits: PullLimits) -> None:
        self._parallel = limits.parallel
        self._bucket = TokenBucket(limits.per_s, limits.burst)
        self._pulls: dict[Pull, _Pull] = {}
        self._node_up = False

    def handle(self, event: PullEvent, now_mono: float) -> list[Send]:
        """Handle an event of the sync loop as far as it concerns pulls; the messages to send."""
        match event:
            case PullRequest(slot, request):
                if isinstance(request, PullImage):
                    return self.wanted(slot, request, now_mono)
                return self.abandoned(slot, request, now_mono)
            case PullProgress():
                return self.progressed(event)
            case PullEnded():
                return self.ended(event, now_mono)
            case WorkerUp(slot):
                return self.node_up(now_mono) if slot == NODE_SLOT else []
            case WorkerDown(slot):
                return self.node_down() if slot == NODE_SLOT else self.worker_down(slot, now_mono)
            case SyncTick():
                return self.break_off_deserted(now_mono)
        assert_never(event)

    # --- the pod workers ---

    def wanted(self, slot: int, request: PullImage, now_mono: float) -> list[Send]:
        """A pod needs an image. Answered by one PullEnded, now or later."""
        key = request.pull
        pull = self._pulls.get(key)
        if pull is None and len(self._pulls) >= MAX_PULLS:
            return [Send(slot, _refused(key, QUEUE_FULL))]
        if pull is not None and pull.result is not None:
            del self._pulls[key]
            return [Send(slot, pull.result)]
        if pull is None:
            pull = self._pulls[key] = _Pull()
        pull.waiters.add((slot, request.uid))
        return [*self._start_due(now_mono), *self._told_to_wait(slot, key)]

    def abandoned(self, slot: int, request: AbandonPull, now_mono: float) -> list[Send]:
        """A pod no longer waits."""
        pull = self._pulls.get(request.pull)
        if pull is None or (slot, request.uid) not in pull.waiters:
            return []
        pull.waiters.discard((slot, request.uid))
        return [] if pull.waiters else [*self._break_off(request.pull, pull), *self._start_due(now_mono)]

    def worker_down(self, slot: int, now_mono: float) -> list[Send]:
        """A pod worker was reaped, and who waited in it with it."""
        for key, pull in tuple(self._pulls.items()):
            gone = {waiter for waiter in pull.waiters if waiter[0] == slot}
            pull.waiters -= gone
            if gone and not pull.waiters:
                pull.deserted_at = now_mono
                if pull.state is _State.WAITING:
                    del self._pulls[key]
        return []

    # --- the node worker ---

    def node_up(self, now_mono: float) -> list[Send]:
        self._node_up = True
        return self._start_due(now_mono)

    def node_down(self) -> list[Send]:
        """The node worker died: its pulls wait to be begun anew."""
        self._node_up = False
        for key, pull in tuple(self._pulls.items()):
            if pull.state in (_State.RUNNING, _State.CANCELLING):
                pull.state, pull.paid = _State.WAITING, True
            if pull.state is _State.WAITING and not pull.waiters:
                del self._pulls[key]
        return []

    def progressed(self, progress: PullProgress) -> list[Send]:
        """Progress of a pull, for every pod worker that waits for it."""
        pull = self._pulls.get(progress.pull)
        return [Send(slot, progress) for slot in pull.slots()] if pull is not None else []

    def ended(self, ended: PullEnded, now_mono: float) -> list[Send]:
        """The answer to a StartPull: always one, also after a CancelPull."""
        pull = self._pulls.get(ended.pull)
        if pull is None or pull.state not in (_State.RUNNING, _State.CANCELLING):
            return []
        return [*self._settle(pull, ended), *self._start_due(now_mono)]

    def _settle(self, pull: _Pull, ended: PullEnded) -> list[Send]:
        if pull.state is _State.CANCELLING and pull.waiters and ended.error:
            pull.state, pull.paid = _State.WAITING, False  # Somebody has come while it was broken off.
            return []
        if pull.state is _State.RUNNING and not pull.waiters:
            pull.state, pull.result = _State.ENDED, ended
            return []
        del self._pulls[ended.pull]
        return [Send(slot, ended) for slot in pull.slots()]

    # --- time ---

    def break_off_deserted(self, now_mono: float) -> list[Send]:
        """Break off pulls whose waiters died and that no pod has asked for again in time."""
        commands: list[Send] = []
        for key, pull in tuple(self._pulls.items()):
            if not pull.waiters and now_mono - pull.deserted_at >= ADOPTION_S:
                commands += self._break_off(key, pull)
        return commands

    # --- deciding ---

    def _start_due(self, now_mono: float) -> list[Send]:
        """Begin what can be begun, oldest first."""
        if not self._node_up:
            return []
        commands: list[Send] = []
        busy = sum(pull.state in (_State.RUNNING, _State.CANCELLING) for pull in self._pulls.values())
        waiting = [(key, pull) for key, pull in self._pulls.items() if pull.state is _State.WAITING]
        for key, pull in waiting:
            if busy >= self._parallel:
                break
            if pull.paid or self._bucket.try_accept(now_mono):
                pull.state = _State.RUNNING
                busy += 1
                commands.append(Send(NODE_SLOT, StartPull(**key.parts)))
            else:
                del self._pulls[key]
                commands += [Send(slot, _refused(key, QPS_EXCEEDED)) for slot in pull.slots()]
        return commands

    def _break_off(self, key: Pull, pull: _Pull) -> list[Send]:
        """Nobody waits for it."""
        if pull.state is _State.RUNNING:
            pull.state = _State.CANCELLING
            return [Send(NODE_SLOT, CancelPull(**key.parts))]
        if pull.state is not _State.CANCELLING:
            del self._pulls[key]
        return []

    def _told_to_wait(self, slot: int, key: Pull) -> list[Send]:
        """Progress of a pull that has not begun."""
        pull = self._pulls.get(key)
        if pull is None or pull.state is not _State.WAITING:
            return []
        before = list(self._pulls).index(key)
        words = f"waiting for its turn, {before} before it"
        return [Send(slot, PullProgress(**key.parts, words=words))]


def _refused(key: Pull, why: str) -> PullEnded:
    return PullEnded(**key.parts, error=PULL_FAILED, message=why)
