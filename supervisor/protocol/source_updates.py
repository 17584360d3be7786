"""Differences between the sources' desired objects and the previous ones (pkg/kubelet/types/pod_update.go). Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ObjectKey
from ipc.k8s.scheduling.priority import pod_priority
from supervisor.protocol.manifests import DesiredObject, created_at

PART: Final = 8
"""Most pods of one part."""


class PodOperation(enum.StrEnum):
    """pkg/kubelet/types/pod_update.go, PodOperation; RESTORE and SET as its documents describe them."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    REMOVE = "REMOVE"
    RECONCILE = "RECONCILE"
    """Only the status differs from what was reported."""
    DELETE = "DELETE"
    """The pod's deletionTimestamp was set."""
    RESTORE = "RESTORE"
    """A pod of the checkpoint: supervise it, but its source was not read yet."""
    SET = "SET"
    """Everything at once. Refused: a set without its differences cannot be acted on one pod at a time."""


class PodUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on some pods of one source. Raises ValueError for SET."""

    op: PodOperation
    source: str
    pods: tuple[Pod, ...] = ()
    is_batched: bool = False
    """More updates follow: the first statuses of new pods wait for the `StatusesDue` that ends the batch."""

    def __post_init__(self) -> None:
        if self.op is PodOperation.SET:
            raise ValueError("SET is not supported: a source's whole set is given to PodConfig.merge")


class ObjectUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """ConfigMaps and Secrets that came or changed, and those that are gone."""

    stated: tuple[DesiredObject, ...] = ()
    gone: tuple[ObjectKey, ...] = ()


class ObjectsExpected(msgspec.Struct, frozen=True):
    """Objects that were there before the agent was restarted, and of which it is not known yet whether they still are:
    their file, or their source, could not be read since."""

    keys: frozenset[ObjectKey]


class PodsIncomplete(msgspec.Struct, frozen=True):
    """Pods of the cluster that are stated while what they refer to is being read, by UID: all that there are."""

    uids: frozenset[str]


Update = PodUpdate | ObjectUpdate | ObjectsExpected | PodsIncomplete
"""One update that a merge brings."""


def admission_order(pod: Pod) -> tuple[int, float]:
    """Key by which pods that come at once are sorted. HandlePodAdditions sorts by age: of two that do not fit together
    the older one has its place. By priority before that, as the scheduler's queue: so pods begin in order when the host
    has started anew."""
    return -pod_priority(pod), created_at(pod)


def in_parts(update: Update) -> Iterator[Update]:
    """The update in parts of PART pods, in their order."""
    if not isinstance(update, PodUpdate) or len(update.pods) <= PART:
        yield update
        return
    pods = sorted(update.pods, key=admission_order)
    for first in range(0, len(pods), PART):
        yield msgspec.structs.replace(update, pods=tuple(pods[first : first + PART]))
