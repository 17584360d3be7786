"""Messages of the master and the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.kubecontainer.pod_status import SandboxStatus
from ipc.k8s.nodestatus.node import NodeCondition
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.k8s.podresources.allocation import PodResourceInfo
from ipc.link.messages.base import Message, Ready, Shutdown
from ipc.link.messages.pod_worker import Freeze


class PodChanged(Message, frozen=True, kw_only=True):
    """Informer feed: added or modified."""

    resource_version: int
    pod: Pod
    status: PodStatus
    source: str
    deletion_timestamp: str = ""
    observed_at: float = 0.0
    """Start of the observation that is the reason for this message, monotonic seconds; 0.0 for another reason."""
    is_observed: bool = True
    """Whether the status follows from what was observed. False of a restored pod until its first observation."""
    next_try: dict[str, str] = msgspec.field(default_factory=dict)
    """Container name -> when the next start comes and why (for describe)."""
    summary: str = ""
    slot: int = -1
    """Slot of the worker that owns the pod; -1 without one."""
    sandbox: SandboxStatus | None = None
    """The newest one that was observed."""
    allocated: PodResourceInfo | None = None
    """Resources that the pod was allocated, where they are not those that ``pod`` asks for."""
    waits_for: str = ""
    """Why something that is due is not done for the pod (`ipc.link.messages.wait_reasons.WaitReason`); empty while
    nothing holds it up, or not for long."""


class PodGone(Message, frozen=True, kw_only=True):
    resource_version: int
    uid: str


class EventChanged(Message, frozen=True, kw_only=True):
    resource_version: int
    event: Event


class PackedEventChanged(Message, frozen=True, kw_only=True, tag="EventChanged"):
    """An `EventChanged`, for who sends an event that was packed before."""

    resource_version: int
    event: msgspec.Raw


class EventGone(Message, frozen=True, kw_only=True):
    resource_version: int
    name: str


class ObjectSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object beside pods; a ConfigMap or Secret without any of its values, which never reach the API server."""

    kind: ObjectKind
    metadata: ObjectMeta
    """Without annotations: tools write whole objects into them."""
    type: str = ""
    """Type of a Secret."""
    immutable: bool = False
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    """Key to the size of its value in bytes, in the order of keys; of a large number only the first."""
    keys: int = 0
    """Number of all keys."""
    size_bytes: int = 0
    """Bytes of all values."""
    source: str
    file: str
    priority_class: PriorityClass | None = None
    """One of these as it is: there is nothing in it to hide."""
    runtime_class: RuntimeClass | None = None
    """A RuntimeClass as it is."""
    persistent_volume: PersistentVolume | None = None
    persistent_volume_claim: PersistentVolumeClaim | None = None

    @property
    def object(self) -> PriorityClass | RuntimeClass | PersistentVolume | PersistentVolumeClaim | None:
        """The object itself, of a kind that is told as it is."""
        return self.priority_class or self.runtime_class or self.persistent_volume or self.persistent_volume_claim


class ObjectChanged(Message, frozen=True, kw_only=True):
    resource_version: int
    summary: ObjectSummary


class ObjectGone(Message, frozen=True, kw_only=True):
    resource_version: int
    kind: ObjectKind
    namespace: str
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


class AgentChanged(Message, frozen=True, kw_only=True):
    """State of the agent and its workers."""

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
    network_problem: str = ""
    """Why no pod can get a network of its own."""
    sources_ready: bool
    config_file: str = ""
    """Path of the configuration file; empty when there is none."""
    going_down: str = ""
    """Cause, while the node goes down or is down and admits no pod: ``shutdown`` or ``drain``."""
    sync_frequency_s: float = 60.0
    """How often the sync loop has something to do at least."""
    workers: tuple[WorkerInfo, ...]
    conditions: tuple[NodeCondition, ...] = ()
    """Conditions of pressure on the node."""
    unhealthy_devices: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Numbers of devices that no pod is given, by extended resource."""


class Reply(Message, frozen=True, kw_only=True):
    request_id: int
    code: int
    """HTTP status."""
    reason: str = ""
    message: str = ""
    results: tuple[str, ...] = ()
    """apply/delete: one line each as kubectl prints it, e.g. `pod/web created`."""
    warnings: tuple[str, ...] = ()
    """Lines that kubectl prints behind ``Warning:``."""
    objects: str = ""
    """JSON array of the objects as they became, where that was asked for. Secrets in it have no values."""


class FeedSynced(Message, frozen=True, kw_only=True):
    """All objects that existed when this API server started have been sent."""


class Request(Message, frozen=True, kw_only=True):
    """A request of the API server's. It is answered once, by a `Reply` of the same number."""

    request_id: int


ApplyVerb = Literal["apply", "create", "replace"]


class ApplyManifests(Request, frozen=True, kw_only=True):
    file: str
    """Name for error texts."""
    body: bytes
    verb: ApplyVerb = "apply"
    """Whether the objects may be there already, must not, or must."""
    namespace: str = ""
    """Namespace of objects that state none; others must state this one. Empty: ``default``, and any other."""
    dry_run: bool = False
    """Only say what would become of it."""
    show: bool = False
    """The reply has the objects."""

    def __repr__(self) -> str:
        """Without the body: it may hold Secrets."""
        return f"ApplyManifests({self.request_id}, {self.verb}, {self.file!r}, {len(self.body)} bytes)"


class PatchObject(Request, frozen=True, kw_only=True):
    """Change an object that was applied. The reply has it as it became."""

    kind: str
    namespace: str
    """Empty for a kind that has none."""
    name: str
    patch_type: str
    """One of `supervisor.patching.patches.PATCH_TYPES`."""
    body: bytes
    dry_run: bool = False
    values: bool = False
    """The reply has the values of a Secret."""

    def __repr__(self) -> str:
        """Without the body: it may hold Secrets."""
        return f"PatchObject({self.request_id}, {self.kind} {self.namespace}/{self.name}, {len(self.body)} bytes)"


class PodRequest(Request, frozen=True, kw_only=True):
    """A request about one pod."""

    namespace: str
    name: str
    """Name of the pod."""


class RestartPod(PodRequest, frozen=True, kw_only=True):
    """End a pod as if it were deleted, and begin it anew. The reply means that it has begun to end."""

    grace_period_s: int | None = None


class RestartContainer(PodRequest, frozen=True, kw_only=True):
    """Replace one container of a pod. The reply means that it was asked for, not that it has begun."""

    container: str
    grace_period_s: int | None = None


class FreezePod(PodRequest, frozen=True, kw_only=True):
    """Pause the processes of a pod, or resume them. The reply means that it was done."""

    freeze: Freeze


class DeletePod(PodRequest, frozen=True, kw_only=True):
    grace_period_s: int | None = None


class DeleteObject(Request, frozen=True, kw_only=True):
    """An object beside pods that was applied."""

    kind: ObjectKind
    namespace: str
    name: str


class RestartWorker(Request, frozen=True, kw_only=True):
    """Replace a worker by its next incarnation. The reply means that it was asked to leave, not that it has left."""

    name: str


class SetLogLevel(Request, frozen=True, kw_only=True):
    """Change which lines every process logs, until the configuration is read again."""

    area: str
    """Empty: everything that has no level of its own."""
    level: str


class StopAgent(Request, frozen=True, kw_only=True):
    """Orderly stop; with ``pods`` every pod is terminated first."""

    pods: bool = False


class DrainNode(Request, frozen=True, kw_only=True):
    """The pods end in order and stay down. The reply means that it has begun."""


class UncordonNode(Request, frozen=True, kw_only=True):
    """A drained node gets its pods back."""


class ReloadSettings(Request, frozen=True, kw_only=True):
    """The configuration file is read again, as by SIGHUP. The reply's results are what changed."""

    accept_manifests: bool = False
    """And the manifests are taken as they are now, where it is in doubt whether they are meant."""


class CollectGarbage(Request, frozen=True, kw_only=True):
    """Remove unused images, dead containers and directories of pods that are gone. The reply's message is the
    `GarbageReport`, as JSON."""

    dry_run: bool = False
    """Only tell what would be removed."""


class PostManifests(Request, frozen=True, kw_only=True):
    """The pods of a body become the whole set of the source ``http``."""

    body: bytes

    def __repr__(self) -> str:
        """Without the body, which is large."""
        return f"PostManifests({self.request_id}, {len(self.body)} bytes)"


class ReadConfiguration(Request, frozen=True, kw_only=True):
    """The reply's message is the configuration in effect, as JSON."""


class ReadObject(Request, frozen=True, kw_only=True):
    """The reply's message is a ConfigMap or Secret with its values, as JSON: for the user who has stated it."""

    kind: ObjectKind
    namespace: str
    name: str


class ReadNextStep(Request, frozen=True, kw_only=True):
    """The reply's message is what is done for a pod next, as JSON (`ipc.link.messages.wait_reasons.NextStep`)."""

    namespace: str
    name: str


class ReadProfile(Request, frozen=True, kw_only=True):
    """The reply's message is a profile of the master or of a worker, after so many seconds."""

    process: str
    """``master``, or a worker's name."""
    profile: str
    seconds: int
    action: str = ""
    """As of `ipc.link.messages.base.TakeProfile`."""


FeedMessage = PodChanged | PodGone | EventChanged | EventGone | ObjectChanged | ObjectGone | AgentChanged | FeedSynced
FeedReplay = FeedMessage | PackedEventChanged
"""As the master sends it to who has just come up."""
ApiServerFeed = FeedMessage | Reply | Shutdown
AdminRequest = (
    ApplyManifests
    | PatchObject
    | RestartPod
    | RestartContainer
    | FreezePod
    | DeletePod
    | DeleteObject
    | RestartWorker
    | SetLogLevel
    | StopAgent
    | DrainNode
    | UncordonNode
    | ReloadSettings
    | PostManifests
    | CollectGarbage
    | ReadConfiguration
    | ReadObject
    | ReadNextStep
    | ReadProfile
)
ApiServerRequest = Ready | AdminRequest
