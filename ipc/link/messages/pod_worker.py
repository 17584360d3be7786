"""Messages of the master and a pod worker."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults, ProbeType
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.devices import NOTHING, Allocated, Devices
from ipc.link.messages.base import (
    EventReport,
    Message,
    OfPull,
    ProfileTaken,
    PullEnded,
    PullProgress,
    Ready,
    Shutdown,
    TakeProfile,
)
from ipc.link.messages.sync_error import SyncError


class WorkType(enum.StrEnum):
    """pkg/kubelet/pod_workers.go, PodRecord."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


class Freeze(enum.StrEnum):
    """An act on the processes of a pod that somebody wants."""

    NONE = ""
    PAUSE = "pause"
    RESUME = "resume"


class SyncAction(enum.StrEnum):
    """pkg/kubelet/container/sync_result.go, SyncAction."""

    START_CONTAINER = "StartContainer"
    KILL_CONTAINER = "KillContainer"
    REMOVE_CONTAINER = "RemoveContainer"
    CREATE_SANDBOX = "CreatePodSandbox"
    KILL_SANDBOX = "KillPodSandbox"
    REMOVE_SANDBOX = "RemovePodSandbox"
    RESIZE_POD = "ResizePodInPlace"
    PAUSE_POD = "PausePod"
    """Our own, as the next."""
    RESUME_POD = "ResumePod"


class SyncResult(Message, frozen=True, kw_only=True):
    """Outcome of an action on one target."""

    action: SyncAction
    target: str
    """Container name, or the pod's name for sandbox actions."""
    error: SyncError = SyncError.NONE
    message: str = ""
    retry_at: float = 0.0
    """Back-off only: wall time before which trying again is useless; 0 when unknown."""


class PullFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Back-off of one image of one pod after failed pulls (flowcontrol.Backoff, an entry)."""

    image: str
    """Reference as the manifest has it."""
    backoff_s: float
    updated_at: float
    """Wall time at which the last pull failed."""
    message: str
    """Why it did."""
    reason: SyncError = SyncError.IMAGE_PULL


class SyncPod(Message, frozen=True, kw_only=True):
    """Sync one pod, or terminate it, by ``kind``. Answered by one `SyncDone`."""

    uid: str
    generation: int
    incarnation: int
    kind: WorkType
    pod: Pod | None
    """None for an orphan: a pod in the runtime that no source states; its labels say how to stop it."""
    row: int
    """Row of the pod on the board; -1 when ``status`` travels here."""
    min_observed_at: float
    """The observation acted on must have begun after this (monotonic seconds)."""
    status: RuntimePodStatus | None = None
    """Instead of the row: too large for it, or an orphan."""
    grace_period_s: int | None = None
    """TERMINATING: effective grace period."""
    remove: bool = False
    """The pod is no longer wanted. TERMINATING: its sandbox is left to its removal; TERMINATED: take sandbox and
    containers away. Otherwise they stay for logs."""
    restarting_all: bool = False
    """Condition AllContainersRestarting is True: a RestartAllContainers rule has begun and not come to its end."""
    pull_failures: tuple[PullFailure, ...] = ()
    """Back-offs that the last sync of this pod reported: kept by the master, so that they survive the worker."""
    dead_containers: tuple[str, ...] = ()
    """Ids of dead containers that the node has too many of (containerGarbageCollection.maxContainers)."""
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """Probe results by container id; a container that is missing has not been probed."""
    evicted: PodFailure | None = None
    """Why it was evicted, if it was: this is kept on the disk. TERMINATED: its containers are removed, too."""
    objects: ConfigObjects = ConfigObjects()
    """ConfigMaps and Secrets that it refers to and that exist."""
    awaits: bool = False
    """The sync waits for `ObjectsRead`, whose objects count in place of these: what the pod refers to is being read."""
    actuated: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """Resources that its containers and sandboxes were given while they ran, by id; kept by the master."""
    devices: Allocated = NOTHING
    """Devices of its containers, by container and extended resource."""
    known_devices: Devices = msgspec.field(default_factory=dict)
    """Devices that it has, as they are now, of each resource that it asks for."""
    unsure_resources: bool = False
    """Containers may have been given others since, by a sync that was never answered."""
    restarts: dict[str, int | None] = msgspec.field(default_factory=dict)
    """Containers that are to be replaced because somebody wants it, by id, and the grace periods that were asked for,
    in seconds."""
    freeze: Freeze = Freeze.NONE
    """SYNC: do this and nothing else."""
    network_problem: str = ""
    """Why no pod can get a network of its own now."""
    active_since: str = ""
    """When it began to be active, as RFC 3339; of a pod whose activity has a deadline."""
    ended: tuple[RuntimeContainerStatus, ...] = ()
    """Ends of containers that the observation lacks, as the master remembers them."""


class ObjectsRead(Message, frozen=True, kw_only=True):
    """Objects for the sync of that generation, which waits for them."""

    uid: str
    generation: int
    objects: ConfigObjects

    def __repr__(self) -> str:
        """Without the objects: some are Secrets."""
        return f"ObjectsRead({self.uid}, {self.generation})"


class CancelSync(Message, frozen=True, kw_only=True):
    """Stop the sync of that generation at its next step (a termination waits, or a shorter grace)."""

    uid: str
    generation: int


class SyncEffects(msgspec.Struct, frozen=True, omit_defaults=True):
    """Effects of syncs on a pod since it was observed."""

    touched: tuple[str, ...] = ()
    """Containers, by id or name, and sandboxes, by id, that were made, started, killed or removed."""
    removed: tuple[str, ...] = ()
    """Containers, and sandboxes with everything in them, by id, of which Podman has answered that they were removed."""
    looks: tuple[bytes, ...] = ()
    """Containers as they were after the last act on them (`workers.kubecontainer.look`), instead of ``touched``."""
    unsure: bool = False
    """An act has failed or was interrupted: more may have been touched."""

    def __or__(self, newer: SyncEffects) -> SyncEffects:
        return SyncEffects(
            touched=tuple(dict.fromkeys((*self.touched, *newer.touched))),
            removed=tuple(dict.fromkeys((*self.removed, *newer.removed))),
            looks=(*self.looks, *newer.looks),
            unsure=self.unsure or newer.unsure,
        )


NO_EFFECTS: Final = SyncEffects()


class SyncDone(Message, frozen=True, kw_only=True):
    """End of one SyncPod, always exactly one."""

    uid: str
    generation: int
    incarnation: int
    kind: WorkType
    results: tuple[SyncResult, ...] = ()
    summary: str = ""
    """Sync summary: state found, actions, next try; for the log and `describe`."""
    took_s: float = 0.0
    """From the request's arrival to its answer."""
    error: SyncError = SyncError.NONE
    """Why the sync as a whole failed."""
    message: str = ""
    retry_at: float = 0.0
    """Wall time before which trying again is useless; 0 when unknown."""
    changed: bool = False
    """Something in the runtime was changed, or may have been: an observation is due."""
    effects: SyncEffects = NO_EFFECTS
    cancelled: bool = False
    pull_failures: tuple[PullFailure, ...] = ()
    """Back-offs for the next sync of this pod."""
    evicted: str = ""
    """SYNC: it takes more than its limits allow, in the words of its status; it is to end."""
    actuated: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """Resources that this sync has given to containers and sandboxes that run, by id."""

    @property
    def failed(self) -> tuple[SyncResult, ...]:
        """Results of the actions that failed."""
        return tuple(result for result in self.results if result.error)


class PullImage(OfPull, frozen=True, kw_only=True):
    """Request for an image that a pod of this worker needs. Sent twice it is one pull request."""

    uid: str


class AbandonPull(OfPull, frozen=True, kw_only=True):
    """A pod no longer waits for a pull."""

    uid: str


class ContainerBegins(Message, frozen=True, kw_only=True):
    """A container is about to be started, and waits until that is on the disk: after the host's end nothing else would
    tell that it ever ran (`podman.store: transient`)."""

    uid: str
    container: RuntimeContainerStatus
    """Status of the container when it runs, as far as that is known."""


class BeginningKept(Message, frozen=True, kw_only=True):
    """The beginning of that container is on the disk: it may start."""

    uid: str
    id: str


class ProbePod(Message, frozen=True, kw_only=True):
    """Probe that pod from now on. Sent again it replaces the former message; a probe that has not changed keeps its
    period."""

    uid: str
    pod: Pod
    row: int
    """Row of the pod on the board, read before each probe; -1 when ``status`` travels here."""
    status: RuntimePodStatus | None = None
    """Instead of the row; with every change of it the message is sent again."""
    terminating: bool = False
    """Only readiness is still probed."""
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """Probe results by container id, as the worker that probed it before reported them. This worker's own results
    take precedence."""


class ContainersChanged(Message, frozen=True, kw_only=True):
    """Other containers of that pod run than before: read its row now, and report results that are not known yet."""

    uid: str
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """Known probe results by container id. One that came before the observation that shows its container may be
    lost."""


class StopProbing(Message, frozen=True, kw_only=True):
    """Stop the probes of that pod: it ends, or another worker is to probe it."""

    uid: str


class ProbeResultChanged(Message, frozen=True, kw_only=True):
    """The result of a container's probe has changed: its threshold was reached."""

    uid: str
    name: str
    """Name of the container."""
    container_id: str
    probe: ProbeType
    result: ProbeResult


class ProbingStopped(Message, frozen=True, kw_only=True):
    uid: str


PodWork = (
    SyncPod
    | ObjectsRead
    | CancelSync
    | PullProgress
    | PullEnded
    | BeginningKept
    | ProbePod
    | ContainersChanged
    | StopProbing
)
PodWorkerCommand = PodWork | TakeProfile | Shutdown
PodWorkerEvent = (
    SyncDone
    | EventReport
    | PullImage
    | AbandonPull
    | ContainerBegins
    | ProbeResultChanged
    | ProbingStopped
    | ProfileTaken
)
PodWorkerReport = Ready | PodWorkerEvent
