"""Messages of the master and the node worker."""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from ipc.k8s.eviction.observations import SignalObservation
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.usage import PodUsage
from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageReport
from ipc.k8s.kubecontainer.log_rotate_policy import LogRotatePolicy
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podresources.cgroup_config import CgroupConfig
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
from ipc.link.messages.cluster import ClusterCommand, ClusterReport
from ipc.link.messages.pod_worker import SyncEffects

EVERY_REQUEST: Final = sys.maxsize
MAX_REPORTED_IMAGES: Final = 2_000
"""Most images of one `ImagesCollected`: it is one frame."""


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
    effects: dict[str, SyncEffects] = msgspec.field(default_factory=dict)
    """By uid, of pods that syncs have changed since the request before."""


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
    number: int = 0
    """Number of a request, which one ``LogsCollected`` answers; 0 of a round."""
    dry_run: bool = False
    """Only tell what would be removed."""


class LogsCollected(Message, frozen=True, kw_only=True):
    """Answer to a numbered ``CollectLogs``."""

    number: int
    paths: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class DeleteVolume(Message, frozen=True, kw_only=True):
    """Remove the directory of a hostPath volume whose claim is gone. Answered by one ``VolumeDeleted``."""

    volume: str
    path: str
    """Below /tmp."""


class VolumeDeleted(Message, frozen=True, kw_only=True):
    """The directory is gone, or why it is not."""

    volume: str
    problem: str = ""


class UpdatePodCgroups(Message, frozen=True, kw_only=True):
    """Give the slices above those of pods these values, and stop slices of pods that nobody knows."""

    slices: dict[str, CgroupConfig]
    """By name, the outermost first."""
    uids: tuple[str, ...]
    """All pods that are known."""
    planned_at: float
    """Monotonic time at which these were all. A slice that was made since may be a newer pod's."""


class CollectImages(Message, frozen=True, kw_only=True):
    """Remove images that nobody uses. Answered by one ``ImagesCollected`` with this number."""

    number: int
    policy: ImageGcPolicy
    wanted: dict[str, str]
    """Images of all known pods, as their specs name them -> one of these pods."""
    all_unused: bool = False
    """However much of the file system is in use (DeleteUnusedImages)."""
    report: bool = False
    """Remove nothing; tell of every image, as if ``all_unused`` were set."""


class ImagesCollected(Message, frozen=True, kw_only=True):
    """End of a collection."""

    number: int
    freed_bytes: int = 0
    images: tuple[ImageReport, ...] = ()
    """Images that were removed, or that could not be; of a report every image. At most `MAX_REPORTED_IMAGES`."""
    error: str = ""
    """Why it has failed, as a whole or in part; empty when it has not."""
    capacity_bytes: int = 0
    """Capacity of the images' file system; 0 when it was not looked at."""
    available_bytes: int = 0


class ObserveNode(Message, frozen=True, kw_only=True):
    """Observe the signals of eviction now, without waiting for the period. Answered by a ``NodeObserved``."""

    number: int
    """Number of this request, rising."""
    resource: str = ""
    """Resource of which each pod's use is wanted, too; empty for none."""


class NodeObserved(Message, frozen=True, kw_only=True):
    """Signals of eviction. Sent unasked while a threshold is met, and once when none is any more."""

    signals: dict[Signal, SignalObservation]
    has_image_fs: bool = False
    """Images lie on another file system than the pods' directories."""
    is_split: bool = False
    """Writable layers lie on another one than images."""
    answers: int = 0
    """Number of the request; 0 of one that nobody has asked for."""
    pods: tuple[PodUsage, ...] | None = None
    """Use by each pod of which something runs; None when nobody has asked for it, or it cannot be measured."""


class SetLogRotation(Message, frozen=True, kw_only=True):
    """Rotate containers' logs by another policy from now on."""

    policy: LogRotatePolicy


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
    """Whether Podman answers, and has its network programs; sent when that changes."""

    healthy: bool
    version: str = ""
    message: str = ""
    network_problem: str = ""
    """Why no pod can get a network of its own, as it was known last."""


class ServiceSilent(Message, frozen=True, kw_only=True):
    """The Podman service runs and answers no ping, or pings only. Sent again while that lasts."""

    message: str


NodeWorkerCommand = (
    Track
    | Untrack
    | Observe
    | Relist
    | StartPull
    | CancelPull
    | CollectLogs
    | DeleteVolume
    | CollectImages
    | UpdatePodCgroups
    | SetLogRotation
    | ObserveNode
    | TakeProfile
    | Shutdown
    | ClusterCommand
)
NodeWorkerEvent = (
    Observed
    | Relisted
    | ObservationFailed
    | NodeObserved
    | RuntimeHealth
    | ServiceSilent
    | PullProgress
    | PullEnded
    | EventReport
    | ProfileTaken
    | ImagesCollected
    | LogsCollected
    | VolumeDeleted
    | ClusterReport
)
NodeWorkerReport = Ready | NodeWorkerEvent
