"""Events up: inputs of the sync loop (pkg/kubelet/kubelet.go, syncLoopIteration). Without behaviour.

Reports of children that are events as they are belong to the union too; the others are defined here. The loop answers
each with commands (`supervisor.protocol.commands`).
"""

from __future__ import annotations

import enum
import math

import msgspec

from ipc.k8s.api.v1.event import Event
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.kubecontainer.remembered_ends import RememberedPod
from ipc.k8s.podresources.devices import Devices
from ipc.link.messages.base import EventReport, PullEnded, PullProgress
from ipc.link.messages.cluster import NodeStated, PodValuesStated
from ipc.link.messages.node_worker import (
    ImagesCollected,
    LogsCollected,
    NodeObserved,
    Observation,
    ObservationFailed,
    RuntimeHealth,
    VolumeDeleted,
)
from ipc.link.messages.pod_worker import (
    AbandonPull,
    ContainerBegins,
    Freeze,
    ProbeResultChanged,
    ProbingStopped,
    PullImage,
    SyncDone,
)
from supervisor.config.settings import Settings
from supervisor.protocol.source_updates import ObjectsExpected, ObjectUpdate, PodsIncomplete, PodUpdate
from supervisor.state.resources_checkpoint import PodResources
from supervisor.state.volume_bindings import Binding


class SourcesReady(msgspec.Struct, frozen=True):
    """Every configured source was read completely once."""


class Observations(msgspec.Struct, frozen=True):
    """Observations with their content put on (`supervisor.pods.board_views`)."""

    observations: tuple[Observation, ...]
    relisted_at: float = 0.0
    """Start of the full relist that they come from; 0.0 when they are of single pods."""
    unseen: tuple[str, ...] = ()
    """Pods that exist and that the relist could not observe."""


class WorkerUp(msgspec.Struct, frozen=True):
    """A child sent its first message."""

    slot: int
    incarnation: int


class WorkerLeaving(msgspec.Struct, frozen=True):
    """A child was asked to end: it gets no more work, what it has comes to its end."""

    slot: int


class WorkerDown(msgspec.Struct, frozen=True):
    """A child was reaped."""

    slot: int
    orderly: bool = False
    """The child had been asked to end: no pod is to blame."""
    current_pod: int = 0
    """`ipc.link.shm.board.pod_digest` of the pod in whose step it died or hung; 0 when it was in nobody's."""


class PullRequest(msgspec.Struct, frozen=True):
    """A pod worker's request for an image, or the end of its wait."""

    slot: int
    request: PullImage | AbandonPull


class BeginningRequest(msgspec.Struct, frozen=True):
    """A pod worker waits with a container until its beginning is on the disk."""

    slot: int
    request: ContainerBegins


class StatusesDue(msgspec.Struct, frozen=True):
    """A burst of pods is over: first statuses that were put off for it are reported."""


class SyncTick(msgspec.Struct, frozen=True):
    """A second is over."""


class HousekeepingTick(msgspec.Struct, frozen=True):
    """Every housekeepingPeriod."""


class EventsRestored(msgspec.Struct, frozen=True):
    """Events that an earlier agent has recorded, longest unseen first."""

    events: tuple[Event, ...]


class ProbeResultsRestored(msgspec.Struct, frozen=True):
    """Probe results that an earlier agent has kept."""

    probe_results: dict[str, ProbeResults]
    """By container id."""


class EvictionsRestored(msgspec.Struct, frozen=True):
    """Pods that an earlier agent has evicted and that are not to run again."""

    failures: dict[str, PodFailure]
    """Why, by UID."""


class ResourcesRestored(msgspec.Struct, frozen=True):
    """Resources that an earlier agent has allocated, and given to what runs."""

    pods: dict[str, PodResources]
    """By UID."""


class ContainerRestartsRestored(msgspec.Struct, frozen=True):
    """Restarts of containers that an earlier agent was asked for and has not carried out."""

    pods: dict[str, dict[str, int | None]]
    """By UID: ids of the containers to replace, and the grace periods that were asked for, in seconds."""


class EndsRestored(msgspec.Struct, frozen=True):
    """Runs of containers that an earlier agent has kept."""

    pods: dict[str, RememberedPod]
    """By UID."""
    alive_at: float
    """When that agent was alive for certain, in epoch seconds; 0.0 when nobody knows."""


class BindingsRestored(msgspec.Struct, frozen=True):
    """Claims that were bound to volumes when an earlier agent ended."""

    bindings: tuple[Binding, ...]


class SettingsChanged(msgspec.Struct, frozen=True):
    settings: Settings


class DevicesChanged(msgspec.Struct, frozen=True):
    """Devices of the configuration as they are found now: one has come, or is gone."""

    devices: Devices


class HostAddressesChanged(msgspec.Struct, frozen=True):
    """The host has other addresses, at most one of each family, or none."""

    ips: tuple[str, ...]


class ShutdownCause(enum.StrEnum):
    """Why the pods of the node end in order."""

    HOST = "shutdown"
    """The host goes down (logind)."""
    DRAIN = "drain"
    """Somebody wants it (`rootlet drain`)."""


class NodeShutdownBegan(msgspec.Struct, frozen=True):
    """The pods are to end in order, and none is admitted until that is called off."""

    cause: ShutdownCause
    available_s: float = math.inf
    """Time that there is for all of them."""


class NodeShutdownCalledOff(msgspec.Struct, frozen=True):
    """The cause to take the node down is over. While the other cause holds it goes on going down."""

    cause: ShutdownCause


class GarbageRequest(msgspec.Struct, frozen=True):
    """Somebody asks for a collection of garbage; answered by one `GarbageCollected`."""

    ticket: int
    dry_run: bool


class StopPods(msgspec.Struct, frozen=True):
    """Terminate every pod; answered by one `PodsStopped`."""


class KillPod(msgspec.Struct, frozen=True):
    """A removal that is on its way gets a shorter grace (`rootlet delete --grace-period`)."""

    namespace: str
    name: str
    grace_period_s: int


class ContainerRestartRequested(msgspec.Struct, frozen=True, kw_only=True):
    """A container is to be replaced by another of its name (`rootlet restart container`)."""

    uid: str
    container_id: str
    """The container to replace: nothing is done when that has a successor already."""
    name: str
    grace_period_s: int | None
    """None: as its manifest says."""


class FreezeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants a pod paused or resumed; answered by one `FreezeAnswered`."""

    ticket: int
    namespace: str
    name: str
    freeze: Freeze


LoopEvent = (
    PodUpdate
    | ObjectUpdate
    | ObjectsExpected
    | PodsIncomplete
    | NodeStated
    | PodValuesStated
    | SourcesReady
    | Observations
    | SyncDone
    | EventReport
    | ObservationFailed
    | NodeObserved
    | RuntimeHealth
    | PullRequest
    | BeginningRequest
    | PullProgress
    | PullEnded
    | ImagesCollected
    | LogsCollected
    | VolumeDeleted
    | GarbageRequest
    | ProbeResultChanged
    | ProbingStopped
    | WorkerUp
    | WorkerLeaving
    | WorkerDown
    | StatusesDue
    | SyncTick
    | HousekeepingTick
    | EventsRestored
    | ProbeResultsRestored
    | EvictionsRestored
    | ResourcesRestored
    | BindingsRestored
    | SettingsChanged
    | HostAddressesChanged
    | DevicesChanged
    | NodeShutdownBegan
    | NodeShutdownCalledOff
    | StopPods
    | KillPod
    | ContainerRestartRequested
    | ContainerRestartsRestored
    | EndsRestored
    | FreezeRequest
)
