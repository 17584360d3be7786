"""How what the sources state differs from what they stated before (pkg/kubelet/types/pod_update.go). Pure."""

from __future__ import annotations

import enum

import msgspec

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.config_objects import ObjectKey
from supervisor.protocol.manifests import DesiredObject


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


Update = PodUpdate | ObjectUpdate | ObjectsExpected
"""One update that a merge brings."""
