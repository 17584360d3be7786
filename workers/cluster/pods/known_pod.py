"""A pod as the server has it: the decoded parts of each version, and the rest unchanged. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE, JsonObject
from ipc.k8s.api.annotations import CONFIG_MIRROR
from workers.cluster.node.nulls import without_nulls
from workers.kubeclient.errors import check_name


class KnownMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Part of metav1.ObjectMeta by which versions of a pod are told apart."""

    name: str
    namespace: str
    uid: str
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[JsonObject] | None = None
    finalizers: list[str] | None = None


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str = ""
    last_transition_time: str = ""


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0


class _ContainerState(msgspec.Struct, frozen=True):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, frozen=True):
    name: str
    state: _ContainerState = _ContainerState()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a v1 PodStatus that is looked into here."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str = ""
    qos_class: str = ""
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[_ContainerStatus, ...] = ()


class KnownPod(msgspec.Struct, frozen=True):
    """One version of a pod on the server."""

    metadata: KnownMeta
    spec: msgspec.Raw
    status: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_mirror(self) -> bool:
        """Whether the pod stands for a static pod of this node (pkg/kubelet/types, IsMirrorPod)."""
        return CONFIG_MIRROR in (self.metadata.annotations or {})

    @property
    def is_deleted(self) -> bool:
        """Whether the server waits for the pod's end here."""
        return self.metadata.deletion_timestamp is not None

    def status_value(self) -> JsonObject:
        """The status as plain data, in which what is not set is absent. One that is no status of a pod is empty: the
        node writes its own."""
        try:
            value: JsonObject = without_nulls(msgspec.json.decode(self.status))
            msgspec.convert(value, _Status)
        except UNDECODABLE:
            return {}
        return value

    def means_the_same(self, other: KnownPod) -> bool:
        """Whether nothing differs but the status and what the server notes for itself."""
        ours, theirs = self.metadata, other.metadata
        return self.spec == other.spec and (
            ours.generation,
            ours.labels,
            ours.annotations,
            ours.deletion_timestamp,
            ours.deletion_grace_period_seconds,
        ) == (
            theirs.generation,
            theirs.labels,
            theirs.annotations,
            theirs.deletion_timestamp,
            theirs.deletion_grace_period_seconds,
        )

    def is_older_than(self, other: KnownPod) -> bool:
        """Whether this version lies before another one of the same pod (KEP-5504: the versions of one resource compare
        as numbers; of others nothing is known, and then the answer is no)."""
        ours, theirs = self.metadata.resource_version, other.metadata.resource_version
        return ours.isdecimal() and theirs.isdecimal() and (len(ours), ours) < (len(theirs), theirs)


_DECODER: Final = msgspec.json.Decoder(KnownPod)


def decode_known_pod(data: bytes) -> KnownPod:
    """A pod of the server's JSON. Raises ValueError for one without a name, UID or spec, and for what is no JSON."""
    try:
        pod = _DECODER.decode(data)
    except RecursionError:
        raise ValueError("a pod that is nested too deeply") from None
    str(data, "utf-8")  # the decoder looks at no text of a part that is kept as it came
    if bytes(memoryview(pod.spec)[:1]) != b"{":
        raise ValueError("Expected `object` - at `$.spec`")
    return pod


def answered_pod(answer: bytes, uid: str) -> KnownPod:
    """The pod of an answer about that of a UID. Raises ValueError if it is another one, or none."""
    found = decode_known_pod(answer)
    check_name(found.uid, uid)
    return found
