"""Events into and commands out of the sync loop that are not messages of a link already."""

from __future__ import annotations

import msgspec

from ipc.api.v1.event import Event
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.probe_results import ProbeResults
from ipc.messages.api_server import (
    AgentChanged,
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from ipc.messages.base import EventReport, PullEnded, PullProgress
from ipc.messages.node_worker import (
    CancelPull,
    CollectLogs,
    Observation,
    ObservationFailed,
    Observe,
    Relist,
    StartPull,
    Track,
    Untrack,
)
from ipc.messages.pod_worker import (
    AbandonPull,
    CancelSync,
    ContainersChanged,
    ProbePod,
    ProbeResultChanged,
    ProbingStopped,
    PullImage,
    StopProbing,
    SyncDone,
    SyncPod,
)
from supervisor.config.settings import Settings
from supervisor.protocol.manifests import ObjectsExpected, ObjectUpdate, PodUpdate


class SourcesReady(msgspec.Struct, frozen=True):
    """Every configured source was read completely once."""


class Observations(msgspec.Struct, frozen=True):
    """Observations with their content put on (`supervisor.podworkers.board_views`)."""

    observations: tuple[Observation, ...]
    relisted_at: float = 0.0
    """Start of the full relist that they come from; 0.0 when they are of single pods."""
    unseen: tuple[str, ...] = ()
    """Pods that exist and which that relist could not look at."""


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
    """It had been asked to end: no pod is to blame."""
    current_pod: int = 0
    """`ipc.shm.board.pod_digest` of the pod in whose step it died or hung; 0 when it was in nobody's."""


class PullRequest(msgspec.Struct, frozen=True):
    """What a pod worker asks for, and which one it is."""

    slot: int
    request: PullImage | AbandonPull


class SyncTick(msgspec.Struct, frozen=True):
    """Once a second."""


class HousekeepingTick(msgspec.Struct, frozen=True):
    """Every housekeepingPeriod."""


class EventsRestored(msgspec.Struct, frozen=True):
    """What an earlier life of the agent has told, longest unseen first."""

    events: tuple[Event, ...]


class ProbeResultsRestored(msgspec.Struct, frozen=True):
    """What probes have said to an earlier life of the agent."""

    probe_results: dict[str, ProbeResults]
    """By container id."""


class EvictionsRestored(msgspec.Struct, frozen=True):
    """Who was evicted in an earlier life of the agent, and is not to run again."""

    messages: dict[str, str]
    """By UID."""


class SettingsChanged(msgspec.Struct, frozen=True):
    settings: Settings


class HostAddressesChanged(msgspec.Struct, frozen=True):
    """The host has other addresses, at most one of each family, or none."""

    ips: tuple[str, ...]


class StopPods(msgspec.Struct, frozen=True):
    """Terminate every pod; answered by one `PodsStopped`."""


class KillPod(msgspec.Struct, frozen=True):
    """A removal that is on its way gets a shorter grace (`rootlet delete --grace-period`)."""

    namespace: str
    name: str
    grace_period_s: int


class Send(msgspec.Struct, frozen=True):
    """A message for the child in that slot."""

    slot: int
    message: (
        SyncPod
        | CancelSync
        | Track
        | Untrack
        | Observe
        | Relist
        | StartPull
        | CancelPull
        | PullProgress
        | PullEnded
        | CollectLogs
        | ProbePod
        | ContainersChanged
        | StopProbing
        | PodChanged
        | PodGone
        | EventChanged
        | EventGone
        | ObjectChanged
        | ObjectGone
        | FeedSynced
        | AgentChanged
    )


class PodsStopped(msgspec.Struct, frozen=True):
    """Nothing of ours is left in the runtime."""


class DeathExplained(msgspec.Struct, frozen=True):
    """The death that this answers is a pod's doing, and the pod is isolated: the worker is not to blame."""

    slot: int


class WorkersWanted(msgspec.Struct, frozen=True):
    """So many pod workers are to be there from now on; those beyond have to give their pods away first."""

    count: int
    quarantine: bool = False
    """And one more, for pods that kill theirs."""


class SlotVacated(msgspec.Struct, frozen=True):
    """That slot is not wanted any more, and its last pod has moved: its worker is to end."""

    slot: int


class UpdateRefused(msgspec.Struct, frozen=True):
    """The manifest of a running pod asks for what cannot be: this is what the pod stays."""

    pod: Pod


class Log(msgspec.Struct, frozen=True):
    """One line for the agent's log."""

    level: str
    text: str


LoopEvent = (
    PodUpdate
    | ObjectUpdate
    | ObjectsExpected
    | SourcesReady
    | Observations
    | SyncDone
    | EventReport
    | ObservationFailed
    | PullRequest
    | PullProgress
    | PullEnded
    | ProbeResultChanged
    | ProbingStopped
    | WorkerUp
    | WorkerLeaving
    | WorkerDown
    | SyncTick
    | HousekeepingTick
    | EventsRestored
    | ProbeResultsRestored
    | EvictionsRestored
    | SettingsChanged
    | HostAddressesChanged
    | StopPods
    | KillPod
)
LoopCommand = Send | PodsStopped | DeathExplained | WorkersWanted | SlotVacated | UpdateRefused | Log
