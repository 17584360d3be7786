"""Messages of the master and the node worker."""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from ipc.kubecontainer.pod_status import RuntimePodStatus
from ipc.messages.base import (
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

EVERY_REQUEST: Final = sys.maxsize


class Track(Message, frozen=True, kw_only=True):
    """Write this pod's observations to that row of the board from now on."""

    uid: str
    row: int


class Untrack(Message, frozen=True, kw_only=True):
    uid: str


class Observe(Message, frozen=True, kw_only=True):
    """Observe these pods soon. Requests that wait are answered together."""

    uids: tuple[str, ...]
    number: int = 0
    """Number of this request, rising; an observation says up to which it answers."""
    touched: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By uid: what a sync has made, changed or removed since the pod was observed (`SyncDone.touched`)."""
    removed: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By uid: what is gone since, by the answer of the call that removed it (`SyncDone.removed`)."""
    looks: dict[str, tuple[bytes, ...]] = msgspec.field(default_factory=dict)
    """By uid: containers as a sync has seen them (`SyncDone.looks`)."""
    unsure: tuple[str, ...] = ()
    """Uids of pods of which more may have been touched than is known."""


class Relist(Message, frozen=True, kw_only=True):
    """Full relist now (one also follows each period and an invalid cache)."""


class StartPull(OfPull, frozen=True, kw_only=True):
    """Pull that image: it is the next in the queue. Answered like ``PullImage``."""


class CancelPull(OfPull, frozen=True, kw_only=True):
    """Break off a pull for which no pod waits any more. A ``PullEnded`` may cross this message."""


class CollectLogs(Message, frozen=True, kw_only=True):
    """Remove the log and pod directories of all pods but these."""

    uids: tuple[str, ...]
    listed_at: float
    """Wall time at which these were all. A directory that was made or changed since may be a newer pod's."""


class WeighClasses(Message, frozen=True, kw_only=True):
    """CPU shares of all burstable pods together: the weight of their cgroup."""

    burstable_shares: int


class Observation(Message, frozen=True, kw_only=True):
    """Newest observation of one pod. Its content is on the pod's row, or here without a row or when it does not fit."""

    uid: str
    observed_at: float
    changed: bool
    answers: int = EVERY_REQUEST
    """Number of the newest request for this pod of which the observation knew. What shows all containers that there
    were at its time answers every request until then."""
    row: int = -1
    status: RuntimePodStatus | None = None


class Observed(Message, frozen=True, kw_only=True):
    observations: tuple[Observation, ...]


class Relisted(Message, frozen=True, kw_only=True):
    """A full relist succeeded. Every pod was seen (or seen to be absent) at ``started_at``, but for the ``unseen``."""

    started_at: float
    changed: tuple[Observation, ...]
    """Pods whose observed status changed, and every untracked one (orphans) with its status inline."""
    unseen: tuple[str, ...] = ()
    """Pods that exist and could not be observed: an ``ObservationFailed`` says why. They are observed again."""


class ObservationFailed(Message, frozen=True, kw_only=True):
    """A pod could not be observed, although the runtime answers. The observation is tried again, and reported again."""

    uid: str
    message: str


class RuntimeHealth(Message, frozen=True, kw_only=True):
    """Whether Podman answers; sent when that changes."""

    healthy: bool
    version: str = ""
    message: str = ""


class ServiceSilent(Message, frozen=True, kw_only=True):
    """The Podman service runs and answers no ping, or pings only. Sent again while that lasts."""

    message: str


NodeWorkerCommand = (
    Track | Untrack | Observe | Relist | StartPull | CancelPull | CollectLogs | WeighClasses | TakeProfile | Shutdown
)
NodeWorkerEvent = (
    Observed
    | Relisted
    | ObservationFailed
    | RuntimeHealth
    | ServiceSilent
    | PullProgress
    | PullEnded
    | EventReport
    | ProfileTaken
)
NodeWorkerReport = Ready | NodeWorkerEvent
