"""One tagged union per link. Everything that crosses a process boundary as a message is defined here.

Which message answers which:

=====================  ==========================================================================
``Spawn``              ``Spawned``, and one day ``Exited``; or ``NotBorn``
``SyncPod``            exactly one ``SyncDone`` with the same uid, generation and incarnation,
                       unless the worker dies first; any number of ``EventReport`` before it
``CancelSync``         nothing of its own: the sync it names ends early with its ``SyncDone``
``Observe``            ``Observed`` that contains every uid asked for, observed after the request
``Relist``             ``Relisted``
``PullImage``          exactly one ``PullEnded`` for that reference, after any number of ``PullProgress``,
                       unless ``AbandonPull`` or the death of the worker that asked comes first
``ProbePod``           any number of ``ProbeVerdict`` and ``EventReport``, until ``StopProbing``
``StopProbing``        exactly one ``ProbingStopped``, after which nothing of that pod is probed there
``MakeSocket``         exactly one ``SocketMade`` or ``SocketRefused`` with the same number, unless the dialer
                       ends first
``ApplyManifests``     ``Reply`` with the same request_id; so for ``DeletePod``, ``RestartWorker`` and ``StopAgent``
=====================  ==========================================================================
"""

from __future__ import annotations

import enum

import msgspec

from ipc.api import Event, Pod, PodStatus
from ipc.boot import Role, WorkerSettings
from ipc.probe_results import ProbeResult, ProbeType, ProbeVerdicts
from ipc.runtime import RuntimePodStatus, SandboxStatus


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="tag", omit_defaults=True):
    """Tagged by class name."""


# --- master <-> zygote (packets) -------------------------------------------------------------------------------


class Spawn(_Message, frozen=True, kw_only=True):
    """Fork a child into a slot. File descriptors ride along: its link and the file for its stack when it crashes (none
    for ``Role.EXEC``), then what it serves: the admin socket or the dialer's."""

    slot: int
    incarnation: int
    role: Role
    settings: WorkerSettings | None = None
    argv: tuple[str, ...] = ()
    """For ``Role.EXEC``: the program and its arguments."""
    env: dict[str, str] = {}
    """For ``Role.EXEC``: added to the environment."""


class SignalChild(_Message, frozen=True, kw_only=True):
    """Send a signal to that incarnation, if it has not been reaped. ``EXEC`` children get it as a process group."""

    slot: int
    incarnation: int
    signum: int


class Spawned(_Message, frozen=True, kw_only=True):
    slot: int
    incarnation: int
    pid: int


class Exited(_Message, frozen=True, kw_only=True):
    """Reaped: this incarnation is gone for certain."""

    slot: int
    incarnation: int
    pid: int
    exit_code: int
    """As ``os.waitstatus_to_exitcode``: negative is a signal."""


class NotBorn(_Message, frozen=True, kw_only=True):
    """There is no such incarnation and never was: no process could be made, or no file descriptor for it."""

    slot: int
    incarnation: int
    message: str


ZygoteCommand = Spawn | SignalChild
ZygoteReport = Spawned | NotBorn | Exited

# --- master <-> pod worker -----------------------------------------------------------------------------------


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


class SyncResult(_Message, frozen=True, kw_only=True):
    """What happened to one target. ``error`` is a reason such as ``CrashLoopBackOff``; empty is success."""

    action: SyncAction
    target: str
    """Container name, or the pod's name for sandbox actions."""
    error: str = ""
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


class SyncPod(_Message, frozen=True, kw_only=True):
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
    verdicts: dict[str, ProbeVerdicts] = {}
    """What its probes say, by container id; one that is not in it has not been probed."""


class CancelSync(_Message, frozen=True, kw_only=True):
    """Stop the sync of that generation at its next step (a termination waits, or a shorter grace)."""

    uid: str
    generation: int


class Shutdown(_Message, frozen=True, kw_only=True):
    """Finish the step in hand, start nothing, exit 0."""


class Ready(_Message, frozen=True, kw_only=True):
    """First message of every child."""

    pid: int


class SyncDone(_Message, frozen=True, kw_only=True):
    """The end of one SyncPod, always exactly one."""

    uid: str
    generation: int
    incarnation: int
    kind: WorkType
    results: tuple[SyncResult, ...] = ()
    sentence: str = ""
    """Found, did, back when: for the log and `describe`."""
    error: str = ""
    """Set when the sync as a whole failed ('' otherwise): a kind such as Timeout, Unavailable, StaleView, Internal."""
    message: str = ""
    changed: bool = False
    """Something in the runtime was touched, or may have been: a fresh look is due."""
    cancelled: bool = False
    pull_failures: tuple[PullFailure, ...] = ()
    """All that is to be remembered for the next sync of this pod."""


class PullImage(_Message, frozen=True, kw_only=True):
    """A pod of this worker needs that image. Sent twice it is one wish."""

    uid: str
    reference: str
    """Complete: registry, path and tag or digest."""


class AbandonPull(_Message, frozen=True, kw_only=True):
    """That pod no longer waits for it."""

    uid: str
    reference: str


class PullProgress(_Message, frozen=True, kw_only=True):
    """How far a pull has got, for people; to everybody who waits for it."""

    reference: str
    words: str


class PullEnded(_Message, frozen=True, kw_only=True):
    """To everybody who waits for it."""

    reference: str
    image_id: str = ""
    error: str = ""
    """An ErrorKind; empty when it succeeded."""
    message: str = ""
    took_s: float = 0.0
    """From its beginning to its end, without the wait for its turn."""


class EventReport(_Message, frozen=True, kw_only=True):
    """Something worth a v1 Event. The master stamps, counts and keeps it."""

    uid: str
    namespace: str
    name: str
    type: str
    """Normal or Warning."""
    reason: str
    message: str
    field_path: str = ""
    """spec.containers{name}, as upstream."""
    wall: float = 0.0


class ProbePod(_Message, frozen=True, kw_only=True):
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
    verdicts: dict[str, ProbeVerdicts] = {}
    """What is known of its containers, by id, from whoever probed it before. What this worker found out itself counts
    more."""


class ContainersChanged(_Message, frozen=True, kw_only=True):
    """Other containers of that pod run than before: look at its row now, and say again what is not known yet."""

    uid: str
    verdicts: dict[str, ProbeVerdicts] = {}
    """What is known, by container id. A verdict that came before the view that shows its container may be lost."""


class StopProbing(_Message, frozen=True, kw_only=True):
    """Probe that pod no more: it ends, or another worker is to probe it."""

    uid: str


class ProbeVerdict(_Message, frozen=True, kw_only=True):
    """A probe of a container says something else than before, often enough in a row."""

    uid: str
    name: str
    """Of the container."""
    container_id: str
    probe: ProbeType
    result: ProbeResult


class ProbingStopped(_Message, frozen=True, kw_only=True):
    uid: str


PodWorkerCommand = (
    SyncPod | CancelSync | PullProgress | PullEnded | ProbePod | ContainersChanged | StopProbing | Shutdown
)
PodWorkerReport = Ready | SyncDone | EventReport | PullImage | AbandonPull | ProbeVerdict | ProbingStopped

# --- master <-> node worker ----------------------------------------------------------------------------------


class Track(_Message, frozen=True, kw_only=True):
    """From now on this pod's observations go to that row of the board."""

    uid: str
    row: int


class Untrack(_Message, frozen=True, kw_only=True):
    uid: str


class Observe(_Message, frozen=True, kw_only=True):
    """Look at these pods afresh, soon. Requests that wait are answered together."""

    uids: tuple[str, ...]


class Relist(_Message, frozen=True, kw_only=True):
    """Full relist now (it also happens by period and after doubt)."""


class StartPull(_Message, frozen=True, kw_only=True):
    """Pull that image; its turn has come. Answered like ``PullImage``."""

    reference: str


class CancelPull(_Message, frozen=True, kw_only=True):
    """Nobody waits for it any more: break it off. A ``PullEnded`` may cross this on its way."""

    reference: str


class CollectLogs(_Message, frozen=True, kw_only=True):
    """Remove the log and pod directories of all pods but these."""

    uids: tuple[str, ...]
    listed_at: float
    """Wall time at which these were all. A directory that was made or changed since may be a newer pod's."""


class Observation(_Message, frozen=True, kw_only=True):
    """One pod's newest view. Content is on its row, or here when it has none or does not fit."""

    uid: str
    observed_at: float
    changed: bool
    row: int = -1
    status: RuntimePodStatus | None = None


class Observed(_Message, frozen=True, kw_only=True):
    observations: tuple[Observation, ...]


class Relisted(_Message, frozen=True, kw_only=True):
    """A full relist succeeded. Every pod was seen (or seen to be absent) at ``started_at``, but for the ``unseen``."""

    started_at: float
    changed: tuple[Observation, ...]
    """Pods whose view changed, and every untracked one (orphans) with its status inline."""
    unseen: tuple[str, ...] = ()
    """Pods that exist and could not be looked at: a ``LookFailed`` says why. They are looked at again."""


class LookFailed(_Message, frozen=True, kw_only=True):
    """That pod could not be observed, although the runtime answers. It is tried again, and said again."""

    uid: str
    message: str


class RuntimeHealth(_Message, frozen=True, kw_only=True):
    """Sent when it changes."""

    healthy: bool
    version: str = ""
    message: str = ""


class ServiceSilent(_Message, frozen=True, kw_only=True):
    """Podman lives and is of no use: it answers no ping, or pings only. Told again while that lasts."""

    message: str


NodeWorkerCommand = Track | Untrack | Observe | Relist | StartPull | CancelPull | CollectLogs | Shutdown
NodeWorkerReport = (
    Ready | Observed | Relisted | LookFailed | RuntimeHealth | ServiceSilent | PullProgress | PullEnded | EventReport
)

# --- master <-> API server -----------------------------------------------------------------------------------


class PodChanged(_Message, frozen=True, kw_only=True):
    """Informer feed: added or modified."""

    resource_version: int
    pod: Pod
    status: PodStatus
    source: str
    deletion_timestamp: str = ""
    observed_at: float = 0.0
    """When the observation began that is the reason for this message, monotonic seconds; 0.0 for another reason."""
    next_try: dict[str, str] = {}
    """Container name -> when the next start comes and why (for describe)."""
    sentence: str = ""
    slot: int = -1
    """Of the worker that owns the pod; -1 when nobody does."""
    sandbox: SandboxStatus | None = None
    """The newest one that was observed."""


class PodGone(_Message, frozen=True, kw_only=True):
    resource_version: int
    uid: str


class EventChanged(_Message, frozen=True, kw_only=True):
    resource_version: int
    event: Event


class EventGone(_Message, frozen=True, kw_only=True):
    resource_version: int
    name: str


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `get workers`; heartbeat, step and counters are read from the board by the API server itself."""

    slot: int
    role: str
    name: str
    pid: int
    incarnation: int
    state: str
    pods: int
    deaths: int


class AgentChanged(_Message, frozen=True, kw_only=True):
    """The agent about itself."""

    version: str
    instance: str
    node_name: str
    pid: int
    started_at: float
    runtime_version: str
    runtime_healthy: bool
    runtime_message: str
    runtime_silent_since: float = 0.0
    """Wall time at which Podman was found not to answer; 0.0 while it does."""
    sources_ready: bool
    workers: tuple[WorkerInfo, ...]


class Reply(_Message, frozen=True, kw_only=True):
    request_id: int
    code: int
    """HTTP status."""
    reason: str = ""
    message: str = ""
    results: tuple[str, ...] = ()
    """apply/delete: one line each as kubectl prints it, e.g. `pod/web created`."""


class FeedSynced(_Message, frozen=True, kw_only=True):
    """Everything that existed when this API server started has been sent."""


class ApplyManifests(_Message, frozen=True, kw_only=True):
    request_id: int
    file: str
    """Name for error texts."""
    body: bytes


class DeletePod(_Message, frozen=True, kw_only=True):
    request_id: int
    namespace: str
    name: str
    grace_period_s: int | None = None


class RestartWorker(_Message, frozen=True, kw_only=True):
    """The next incarnation of that worker. The reply says that it was asked to leave, not that it is gone."""

    request_id: int
    name: str


class StopAgent(_Message, frozen=True, kw_only=True):
    """Orderly stop; with ``pods`` every pod is terminated first."""

    request_id: int
    pods: bool = False


ApiServerFeed = PodChanged | PodGone | EventChanged | EventGone | AgentChanged | Reply | FeedSynced | Shutdown
ApiServerRequest = Ready | ApplyManifests | DeletePod | RestartWorker | StopAgent

# --- master <-> dialer ---------------------------------------------------------------------------------------

DialerCommand = Shutdown
DialerReport = Ready

# --- whoever dials into a pod <-> dialer (packets) -----------------------------------------------------------


class MakeSocket(_Message, frozen=True, kw_only=True):
    """A TCP socket in the network namespace of that process, please."""

    number: int
    """Of the request, on its connection."""
    pid: int
    start_ticks: int
    """When the process was started, in clock ticks since boot: if another one has its pid, that is refused."""
    family: int
    """``AF_INET`` or ``AF_INET6``."""
    repeats: int = 0
    """On how many connections it was asked before, which ended without an answer."""


class SocketMade(_Message, frozen=True, kw_only=True):
    """The socket rides along."""

    number: int


class SocketRefused(_Message, frozen=True, kw_only=True):
    number: int
    message: str


DialerAnswer = SocketMade | SocketRefused
