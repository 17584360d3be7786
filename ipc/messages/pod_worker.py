"""Master and pod worker."""

from __future__ import annotations

import enum

import msgspec

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.config_objects import ConfigObjects
from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.kubecontainer.probe_results import ProbeResult, ProbeResults, ProbeType
from ipc.messages.base import EventReport, Message, OfPull, PullEnded, PullProgress, Ready, Shutdown
from ipc.messages.sync_error import SyncError


class WorkType(enum.StrEnum):
    """pkg/kubelet/pod_workers.go, PodWorkerState."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


class SyncAction(enum.StrEnum):
    """pkg/kubelet/container/sync_result.go, SyncAction."""

    START_CONTAINER = "StartContainer"
    KILL_CONTAINER = "KillContainer"
    REMOVE_CONTAINER = "RemoveContainer"
    CREATE_SANDBOX = "CreatePodSandbox"
    KILL_SANDBOX = "KillPodSandbox"
    REMOVE_SANDBOX = "RemovePodSandbox"


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
    """What is remembered of failed pulls of one image for one pod: a flowcontrol.Backoff entry."""

    image: str
    """Reference as the manifest has it."""
    backoff_s: float
    updated_at: float
    """Wall time at which the last pull failed."""
    message: str
    """Why it did."""


class SyncPod(Message, frozen=True, kw_only=True):
    """Bring one pod one step nearer to what is wanted (or down, by ``kind``)."""

    uid: str
    generation: int
    incarnation: int
    kind: WorkType
    pod: Pod | None
    """None for an orphan: a pod in the runtime that nobody wants; its labels say how to stop it."""
    row: int
    """Its row on the board; -1 when ``status`` travels here."""
    min_observed_at: float
    """The view acted on must have been observed after this (monotonic seconds)."""
    status: RuntimePodStatus | None = None
    """Instead of the row: too large for it, or an orphan."""
    grace_period_s: int | None = None
    """TERMINATING: effective grace period."""
    remove: bool = False
    """TERMINATED: the pod is no longer wanted, take its sandbox and containers away. Otherwise they stay for logs."""
    restarting_all: bool = False
    """Its condition AllContainersRestarting is True: a RestartAllContainers rule has begun and not come to its end."""
    pull_failures: tuple[PullFailure, ...] = ()
    """What the last sync of this pod reported: it survives its worker here."""
    garbage: tuple[str, ...] = ()
    """Ids of dead containers that the node has too many of (containerGarbageCollection.maxContainers)."""
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """What its probes say, by container id; one that is not in it has not been probed."""
    evicted: str = ""
    """TERMINATED: why it was, if it was: its containers go too, and this is kept."""
    objects: ConfigObjects = ConfigObjects()
    """Those that it refers to and that are there."""


class CancelSync(Message, frozen=True, kw_only=True):
    """Stop the sync of that generation at its next step (a termination waits, or a shorter grace)."""

    uid: str
    generation: int


class SyncDone(Message, frozen=True, kw_only=True):
    """The end of one SyncPod, always exactly one."""

    uid: str
    generation: int
    incarnation: int
    kind: WorkType
    results: tuple[SyncResult, ...] = ()
    summary: str = ""
    """Found, did, back when: for the log and `describe`."""
    error: SyncError = SyncError.NONE
    """Why the sync as a whole failed."""
    message: str = ""
    changed: bool = False
    """Something in the runtime was touched, or may have been: a fresh look is due."""
    cancelled: bool = False
    pull_failures: tuple[PullFailure, ...] = ()
    """All that is to be remembered for the next sync of this pod."""
    evicted: str = ""
    """SYNC: it takes more than its limits allow, in the words of its status; it is to end."""

    @property
    def failed(self) -> tuple[SyncResult, ...]:
        """What it could not do."""
        return tuple(result for result in self.results if result.error)


class PullImage(OfPull, frozen=True, kw_only=True):
    """A pod of this worker needs that image. Sent twice it is one wish."""

    uid: str


class AbandonPull(OfPull, frozen=True, kw_only=True):
    """That pod no longer waits for it."""

    uid: str


class ProbePod(Message, frozen=True, kw_only=True):
    """From now on this worker probes that pod. Sent again it replaces what it said before; a probe that is as it was
    goes on in its rhythm."""

    uid: str
    pod: Pod
    row: int
    """Its row on the board, read before each probe; -1 when ``status`` travels here."""
    status: RuntimePodStatus | None = None
    """Instead of the row; with every change of it the message is sent again."""
    terminating: bool = False
    """Only readiness is still probed."""
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """What is known of its containers, by id, from whoever probed it before. What this worker found out itself counts
    more."""


class ContainersChanged(Message, frozen=True, kw_only=True):
    """Other containers of that pod run than before: look at its row now, and say again what is not known yet."""

    uid: str
    probe_results: dict[str, ProbeResults] = msgspec.field(default_factory=dict)
    """What is known, by container id. A verdict that came before the view that shows its container may be lost."""


class StopProbing(Message, frozen=True, kw_only=True):
    """Probe that pod no more: it ends, or another worker is to probe it."""

    uid: str


class ProbeResultChanged(Message, frozen=True, kw_only=True):
    """A probe of a container says something else than before, often enough in a row."""

    uid: str
    name: str
    """Of the container."""
    container_id: str
    probe: ProbeType
    result: ProbeResult


class ProbingStopped(Message, frozen=True, kw_only=True):
    uid: str


PodWork = SyncPod | CancelSync | PullProgress | PullEnded | ProbePod | ContainersChanged | StopProbing
PodWorkerCommand = PodWork | Shutdown
PodWorkerEvent = SyncDone | EventReport | PullImage | AbandonPull | ProbeResultChanged | ProbingStopped
PodWorkerReport = Ready | PodWorkerEvent
