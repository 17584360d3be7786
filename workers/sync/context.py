"""What one sync has around it, and what it leaves behind: its record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn, ParamSpec, TypeVar, TypeVarTuple

import msgspec

from ipc.host.clock import Clock, rfc3339
from ipc.host.tasks import first_of
from ipc.kubecontainer.container_gc import GcPolicy
from ipc.kubecontainer.pod_containers import field_path
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.base import EventReport
from ipc.messages.pod_worker import SyncAction, SyncDone, SyncPod, SyncResult
from ipc.podresources.network_settings import NetworkSettings
from ipc.podresources.node_resources import NodeResources
from workers.compute.crash_loop_backoff import BackoffLimits
from workers.images.credentials import KeyedLogin
from workers.images.manager import ImageManager
from workers.images.pull_backoff import PullBackoff
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.kubecontainer.runtime import ErrorKind, ImageInfo, Runtime, RuntimeCallError, VolumeInfo
from workers.lifecycle.pre_stops import PreStops
from workers.logs import layout
from workers.network.etc_mounts import PodFile
from workers.network.sandbox_network import SandboxNetwork
from workers.podhttp.pod_network import Dialer
from workers.specgen.seccomp import SeccompSettings
from workers.sync.fs_executor import FsExecutor
from workers.sync.mutation_limiter import MutationLimiter
from workers.sync.settled_ends import SettledEnds
from workers.userns.unshare import DEFAULT, Unshare

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
ENDING_KINDS: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE})
"""After these nothing more is tried: what the runtime looks like now is unknown, or nobody answers."""


class SyncContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all syncs of one worker share."""

    runtime: Runtime
    images: ImageManager
    clock: Clock
    limits: BackoffLimits
    ownership: Ownership
    pod_logs_dir: str
    pods_dir: str
    dialer: Dialer
    memory_dir: str = ""
    """As ``pods_dir``, for what must not reach a disk."""
    unshare: Unshare = DEFAULT
    """Into Podman's user and mount namespace."""
    node_name: str = ""
    host_ips: Callable[[], tuple[str, ...]] = tuple
    """As they are now: those of pods in the host's network."""
    node: NodeResources = NodeResources()
    network: NetworkSettings = NetworkSettings()
    seccomp: SeccompSettings = SeccompSettings()
    mutations: MutationLimiter
    """Calls that change something, across all syncs of this worker."""
    order: Iterator[int]
    """Which sync began first."""
    report: Callable[[EventReport], Awaitable[None]]
    step: Callable[[str], None]
    """Shows what is being done, for people."""
    files: FsExecutor = msgspec.field(default_factory=FsExecutor)
    """Where what a pod's volumes lie on may hang."""
    settled_ends: SettledEnds = msgspec.field(default_factory=SettledEnds)
    pre_stops: PreStops = msgspec.field(default_factory=PreStops)
    gc: GcPolicy = GcPolicy()
    """How many dead containers a pod keeps."""


class SyncEnded(Exception):
    """The sync ends here, before its last step."""

    def __init__(self, error: str, message: str = "", *, cancelled: bool = False) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        self.message = message
        self.cancelled = cancelled


class PodName(msgspec.Struct, frozen=True):
    """Which pod it is, also when nobody has its manifest."""

    namespace: str
    name: str
    uid: str


class SyncRun:
    """One sync under way: runs its calls, collects its results. Ends in exactly one `SyncDone`."""

    def __init__(self, context: SyncContext, request: SyncPod, pod: PodName, cancel: asyncio.Event) -> None:
        self.context = context
        self.request = request
        self.pod = pod
        """Namespace and name are empty until the view of an orphan has told them."""
        self.view = RuntimePodStatus(uid=pod.uid)
        """The observation that the sync acts on."""
        self.volumes: Mapping[str, MountedVolume] = {}
        """Of the pod, by name, once they are set up."""
        self.network = SandboxNetwork()
        """Of the sandbox in which containers are started, once it is there."""
        self.etc_files: tuple[PodFile, ...] | None = None
        """What all containers of the pod see in /etc; None until they are needed."""
        self.pull_logins: tuple[KeyedLogin, ...] | None = None
        """Of the pod's imagePullSecrets; None until an image is looked for."""
        self.images: dict[str, ImageInfo] = {}
        """Those that this sync has looked at, by complete reference."""
        self.claims: dict[str, VolumeInfo] = {}
        """As `images`, by name: Podman's volumes."""
        self.pull_backoff = PullBackoff(request.uid, request.pull_failures)
        self._cancel = cancel
        self._order = next(context.order)
        self._results: list[SyncResult] = []
        self._found = ""
        self._did: list[str] = []
        self._changed = False
        self._evicted = ""

    @property
    def changed(self) -> bool:
        """It has done something, or tried to."""
        return self._changed

    @property
    def runtime(self) -> Runtime:
        """For reading; what changes something goes through `act`."""
        return self.context.runtime

    @property
    def logs(self) -> Path:
        """The pod's log directory."""
        return layout.pod_directory(self.context.pod_logs_dir, self.pod.namespace, self.pod.name, self.pod.uid)

    # --- doing ---

    async def act(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb that changes the runtime, unless the sync was cancelled.

        Raises SyncEnded when it was, and after an error that leaves nothing to go on from; any other RuntimeCallError
        is the caller's.
        """
        async with self.context.mutations.turn(self._order):
            self.checkpoint()
            self._changed = True
            return await self.read(verb, *args, **kwargs)

    async def read(self, verb: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb that changes nothing. Raises as `act`."""
        try:
            return await verb(*args, **kwargs)
        except RuntimeCallError as error:
            if error.kind in ENDING_KINDS:
                raise SyncEnded(error.kind, str(error)) from error
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
        return await self.context.files.run((self.pod.uid, subject), function, *args, deadline_s=deadline_s)

    def checkpoint(self) -> None:
        """Between two steps. Raises SyncEnded when the sync was cancelled."""
        if self._cancel.is_set():
            self._raise_cancelled()

    async def _until_cancelled(self) -> NoReturn:
        await self._cancel.wait()
        self._raise_cancelled()

    def _raise_cancelled(self) -> NoReturn:
        raise SyncEnded("", "cancelled", cancelled=True)

    # --- telling ---

    def found(self, words: str) -> None:
        self._found = words

    def did(self, words: str) -> None:
        """A part of the sentence."""
        self._did.append(words)

    def step(self, words: str) -> None:
        """On the board, while it lasts."""
        self.context.step(f"{self.pod.namespace}/{self.pod.name}: {words}")

    def evicted(self, message: str) -> None:
        """It cannot go on: the message is its status'."""
        self._evicted = message
        self._did.append("to be evicted")

    def succeeded(self, action: SyncAction, target: str) -> None:
        self._results.append(SyncResult(action=action, target=target))

    def failed(self, action: SyncAction, target: str, error: str, message: str, retry_at: float = 0.0) -> None:
        """``error`` is a reason such as ErrImagePull; ``retry_at`` in wall seconds."""
        self._results.append(SyncResult(action=action, target=target, error=error, message=message, retry_at=retry_at))
        self._did.append(f"{target}: {error}")

    async def event(self, type: str, reason: str, message: str, container: str = "") -> None:
        report = EventReport(
            uid=self.pod.uid,
            namespace=self.pod.namespace,
            name=self.pod.name,
            type=type,
            reason=reason,
            message=message,
            field_path=field_path(self.request.pod.spec if self.request.pod else None, container) if container else "",
            wall=self.context.clock.now().wall,
        )
        await self.context.report(report)

    def done(self, ended: SyncEnded | None = None) -> SyncDone:
        """The answer to the request."""
        return SyncDone(
            uid=self.request.uid,
            generation=self.request.generation,
            incarnation=self.request.incarnation,
            kind=self.request.kind,
            results=tuple(self._results),
            summary=self._summary(),
            error=ended.error if ended else "",
            message=ended.message if ended else "",
            changed=self._changed,
            cancelled=ended.cancelled if ended else False,
            pull_failures=self.pull_backoff.remembered(self.context.clock.now().wall),
            evicted=self._evicted,
        )

    def _summary(self) -> str:
        """Found, did, back when."""
        tries = [result.retry_at for result in self._results if result.retry_at]
        back = f"; next try at {rfc3339(min(tries))}" if tries else ""
        return f"found {self._found or 'nothing'}; {', '.join(self._did) or 'nothing to do'}{back}"
