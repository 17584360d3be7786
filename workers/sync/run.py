"""One sync under way: carries out its calls until it is cancelled, and sends its events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn, ParamSpec, TypeVar, TypeVarTuple

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.pod_containers import field_path
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.link.eventloop.tasks import first_of
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.sync_error import SyncError
from ipc.link.shm.trace import TRACER
from workers.fs.directories import is_absent
from workers.fs.fs_executor import FsExecutor
from workers.kubecontainer.runtime import ContainerProcess, ErrorKind, Runtime, RuntimeCallError
from workers.sync.mutation_limiter import MutationLimiter
from workers.sync.record import SyncEnded, SyncRecord
from workers.sync.removal_gate import RemovalGate

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ENDING_ERRORS: Final = {ErrorKind.TIMEOUT: SyncError.TIMEOUT, ErrorKind.UNAVAILABLE: SyncError.UNAVAILABLE}
"""After these errors nothing more is tried: the state of the runtime is unknown, or it does not answer."""


MAX_PLACES: Final = 1024
"""Most pods whose places are kept; the oldest is dropped first."""


class Place(msgspec.Struct, frozen=True):
    """State that a sync which takes a pod down leaves to the one that removes it."""

    order: int
    """Number of that sync."""
    ended: tuple[ContainerProcess, ...] = ()
    """Processes of containers that it has stopped."""


class SyncServices(msgspec.Struct, frozen=True, kw_only=True):
    """Services by which every sync of one worker carries out its calls and reports."""

    runtime: Runtime
    clock: Clock
    mutations: MutationLimiter
    """Permits for calls that change something, across all syncs of this worker."""
    removals: RemovalGate
    """Turns of pods to be taken down before they are removed."""
    files: FsExecutor = msgspec.field(default_factory=FsExecutor)
    """Threads for work in file systems, which may hang."""
    order: Iterator[int]
    """Numbers the syncs: the one that began first gets the next permit."""
    places: dict[str, Place] = msgspec.field(default_factory=dict)
    """By uid: of syncs that have begun to take a pod down, for those that remove it (`SyncRun.keep_place`)."""
    report: Callable[[EventReport], Awaitable[None]]
    keep_beginning: Callable[[str, RuntimeContainerStatus], Awaitable[None]] | None = None
    """Has the beginning of a pod's container put on the disk; None where the runtime's own record is there."""
    step: Callable[[str], None]
    """Shows the step under way on the board, for people."""


class PodRef(msgspec.Struct, frozen=True):
    """Identity of a pod, known also of an orphan, which has no manifest."""

    namespace: str
    name: str
    uid: str


def touched_by(answer: object, subject: object = "", *_: object) -> str:
    """The container, by id or name, or the sandbox, by id, that a call on ``subject`` has touched. A sandbox that was
    made is touched in its infra container."""
    if isinstance(subject, Mapping):
        return str(subject.get("infra_name") or answer)
    return str(subject)


class SyncRun:
    """One sync of one pod: its calls, its events, its record. It keeps no values that steps pass to one another."""

    def __init__(
        self,
        services: SyncServices,
        pod: PodRef,
        record: SyncRecord,
        cancel: asyncio.Event,
        spec: PodSpec | None = None,
    ) -> None:
        """``spec`` gives events the field path of a container; an orphan has none."""
        self.pod = pod
        self.record = record
        self._services = services
        self._spec = spec
        self._cancel = cancel
        self._order = next(services.order)
        self._is_removal = False
        """Whether this sync or the next one of its pod removes it."""

    @property
    def runtime(self) -> Runtime:
        """For `read`, `find` and, when a call changes something, `act`."""
        return self._services.runtime

    @property
    def clock(self) -> Clock:
        return self._services.clock

    # --- calls ---

    def keep_place(self) -> None:
        """The pod's removal, a later sync, waits no longer for permits than this one: of many pods that go, the first
        are gone while the last still run, instead of all being down and waiting for Podman's removals."""
        self._is_removal = True
        places = self._services.places
        places.pop(self.pod.uid, None)
        if len(places) >= MAX_PLACES:
            del places[next(iter(places))]
        places[self.pod.uid] = Place(self._order)

    def take_kept_place(self) -> tuple[ContainerProcess, ...]:
        """Go on in the place that was kept, to remove the pod: the processes that were stopped by then."""
        self._is_removal = True
        place = self._services.places.pop(self.pod.uid, Place(self._order))
        self._order = place.order
        return place.ended

    async def signal(self, process: ContainerProcess, signal: str, hold_s: float) -> bool:
        """Signal a process past Podman, in the sync's turn, which lasts until it has ended, ``hold_s`` at the longest.
        The turn of a pod that is to be removed is no permit, which a removal needs, and lasts until it is removed.

        False when it could not be signalled. Raises as `act`.
        """
        if self._is_removal:
            return await self._signal_before_removal(process, signal, hold_s)
        async with self._services.mutations.permit(self._order):
            return await self._signal(process, signal, hold_s) is not None

    async def _signal_before_removal(self, process: ContainerProcess, signal: str, hold_s: float) -> bool:
        await self._services.removals.enter(self.pod.uid, self._order)
        has_ended = None
        try:
            has_ended = await self._signal(process, signal, hold_s)
        finally:
            if not has_ended:
                self.leave_removal_gate()
        return has_ended is not None

    async def _signal(self, process: ContainerProcess, signal: str, wait_s: float) -> bool | None:
        """Whether the process has ended in time; None when it could not be signalled."""
        self.checkpoint()
        self.record.changed = True
        if not self.runtime.signal_process(process, signal):
            return None
        return await self.unless_cancelled(self.runtime.wait_exit, process, wait_s)

    def leave_removal_gate(self) -> None:
        """The pod was removed, or is not yet down: another one may go down for its removal."""
        self._services.removals.leave(self.pod.uid)

    def await_removal(self, ended: Sequence[ContainerProcess]) -> None:
        """The pod is down, also if not within its turn, and is removed next: so long others wait. ``ended``: what this
        sync has stopped."""
        self._services.places[self.pod.uid] = Place(self._order, tuple(ended))
        self._services.removals.count(self.pod.uid)

    async def act(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb that changes the runtime, unless the sync was cancelled.

        Raises SyncEnded when it was, and after an error that leaves nothing to go on from; any other RuntimeCallError
        is the caller's.
        """
        async with self._services.mutations.permit(self._order):
            self.checkpoint()
            self.record.changed = True
            try:
                done = await self.read(verb, *args, **kwargs)
            except BaseException:
                self.record.may_have_touched()
                raise
        self.record.touched(touched_by(done, *args))
        return done

    async def begins(self, container: RuntimeContainerStatus) -> None:
        """Before that container is started: have it remembered, where the host's end would take all that tells of it.
        Raises as `act`."""
        if self._services.keep_beginning is not None:
            await self.unless_cancelled(self._services.keep_beginning, self.pod.uid, container)

    async def read(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb that changes nothing. Raises as `act`."""
        try:
            return await verb(*args, **kwargs)
        except RuntimeCallError as error:
            if error.kind in ENDING_ERRORS:
                raise SyncEnded(ENDING_ERRORS[error.kind], str(error)) from error
            raise

    async def find(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """`read` something that need not be there: then None. Raises as `act`."""
        try:
            return await self.read(verb, *args, **kwargs)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def unless_cancelled(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """`read` something that takes long; a cancelled sync does not wait for its end. Raises as `act`."""
        self.checkpoint()
        return await first_of(self.read(verb, *args, **kwargs), self._until_cancelled())

    async def in_files(
        self, subject: str, function: Callable[[*Ts], T], *args: *Ts, deadline_s: float | None = None
    ) -> T:
        """Work in file systems, which may hang, in a thread; of one subject of the pod one at a time. Raises what the
        function does, and TimeoutError, an OSError."""
        with TRACER.span(f"files: {subject.rpartition('/')[2]}"):
            return await self._services.files.run((self.pod.uid, subject), function, *args, deadline_s=deadline_s)

    def has_no_files(self, subject: str, *paths: Sequence[str]) -> bool:
        """Whether none of these paths, each in its steps, is there, nor a thread that may yet make one. It is asked
        where a look is cheaper than a thread that finds nothing to do."""
        return self._services.files.is_idle((self.pod.uid, subject)) and all(is_absent(*path) for path in paths)

    def checkpoint(self) -> None:
        """Between two steps. Raises SyncEnded when the sync was cancelled."""
        if self._cancel.is_set():
            self._raise_cancelled()

    async def _until_cancelled(self) -> NoReturn:
        await self._cancel.wait()
        self._raise_cancelled()

    def _raise_cancelled(self) -> NoReturn:
        raise SyncEnded(SyncError.NONE, "cancelled", cancelled=True)

    # --- events ---

    def step(self, words: str) -> None:
        """Show the step under way on the board."""
        self._services.step(f"{self.pod.namespace}/{self.pod.name}: {words}")
        TRACER.instant(words)

    async def event(self, reason: EventReason, message: str, container: str = "") -> None:
        """Send an event of the pod, or of one of its containers."""
        report = EventReport(
            uid=self.pod.uid,
            namespace=self.pod.namespace,
            name=self.pod.name,
            type=reason.type,
            reason=reason.reason,
            message=message,
            field_path=field_path(self._spec, container) if container else "",
            wall=self.clock.now().wall,
        )
        await self._services.report(report)
