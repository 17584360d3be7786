"""Messages of the master and the part of the node worker that speaks to the cluster.

Down goes the feed of the API server: pods with their statuses, events, the agent. Up comes what the cluster wants of
this node. Of the pods of one life of that worker: any number of ``PodStated`` and ``PodWithdrawn``, then
``PodsListed`` when the server's list has been read to its end, which ``PodsTaken`` answers; from then on the set is
complete, and stays so with every change.
"""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import RuntimeClass, Taint
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKind
from ipc.link.messages.api_server import FeedMessage
from ipc.link.messages.base import EventReport, Message


class PodStated(Message, frozen=True, kw_only=True):
    """A pod that is bound to this node, as the server has it: new, or other than before."""

    pod: Pod
    awaits: bool = False
    """A `ReferencesRead` follows, or the pod is stated again or withdrawn: what it refers to is being read."""

    def __repr__(self) -> str:
        """Without the pod, which is large."""
        return f"PodStated({self.pod.metadata.namespace}/{self.pod.metadata.name})"


class PodWithdrawn(Message, frozen=True, kw_only=True):
    """The server has that pod no longer, or it is bound elsewhere."""

    uid: str


class ReferencesRead(Message, frozen=True, kw_only=True):
    """Everything that a pod refers to was read, which was stated before, or is not waited for any longer."""

    uid: str


class PodsListed(Message, frozen=True, kw_only=True):
    """All pods and objects of the server's list were stated."""


class PodsTaken(Message, frozen=True, kw_only=True):
    """The answer to `PodsListed`: whatever the list had is in the feed, as far as anything of it is left here."""


class RatesChanged(Message, frozen=True, kw_only=True):
    """The configuration was read again and has other rates of requests, in requests a second, and bursts."""

    api_qps: int
    api_burst: int
    event_qps: int
    """0: no limit."""
    event_burst: int


class ObjectStated(Message, frozen=True, kw_only=True):
    """An object that a pod of the cluster refers to, as the server has it. Exactly one of the fields is set."""

    config_map: ConfigMap | None = None
    secret: Secret | None = None
    runtime_class: RuntimeClass | None = None

    def __repr__(self) -> str:
        """Without its values: it may be a Secret."""
        return f"ObjectStated({self.object.kind} {self.object.metadata.namespace}/{self.object.metadata.name})"

    @property
    def object(self) -> ConfigObject:
        """The object itself. Raises ValueError for a message without one."""
        found = self.config_map or self.secret or self.runtime_class
        if found is None:
            raise ValueError("a message about no object")
        return found


class ObjectWithdrawn(Message, frozen=True, kw_only=True):
    """The server has that object no longer, or no pod refers to it any more."""

    kind: ObjectKind
    namespace: str
    name: str


class PodValuesStated(Message, frozen=True, kw_only=True):
    """Values that a pod gets from the cluster beside objects: service variables, tokens, trust anchors, volumes of its
    claims."""

    uid: str
    values: ClusterValues | None
    """None: the pod is gone. One that gets nothing has empty ones."""

    def __repr__(self) -> str:
        """Without the values: some are tokens."""
        return f"PodValuesStated({self.uid})"


class NodeStated(Message, frozen=True, kw_only=True):
    """The Node as the server has it, as far as it matters to pods."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    pod_cidrs: tuple[str, ...] = ()


ClusterCommand = FeedMessage | PodsTaken | RatesChanged
ClusterReport = (
    PodStated
    | ReferencesRead
    | PodWithdrawn
    | PodsListed
    | ObjectStated
    | ObjectWithdrawn
    | PodValuesStated
    | NodeStated
    | EventReport
)
