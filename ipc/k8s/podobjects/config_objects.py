"""Objects that stand beside pods in manifests, and the ConfigMaps, Secrets and claims that a pod refers to. Pure.

A pod refers only to objects of its own namespace, so a kind and a name identify one. Classes and volumes have no
namespace. A pod refers to its RuntimeClass, and has the number of its PriorityClass.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.projected import VolumeProjection
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.pod_claims import PodClaim


class ObjectKind(enum.StrEnum):
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"
    PRIORITY_CLASS = "PriorityClass"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    RUNTIME_CLASS = "RuntimeClass"

    @property
    def plural(self) -> str:
        """The word for these objects in URLs."""
        return f"{self.lower()}{'es' if self.endswith('s') else 's'}"

    @property
    def has_values(self) -> bool:
        """Whether its content is nobody's business but that of the pods that refer to it."""
        return self in (ObjectKind.CONFIG_MAP, ObjectKind.SECRET)

    @property
    def is_namespaced(self) -> bool:
        """Whether an object of that kind belongs to a namespace."""
        return self not in (ObjectKind.PRIORITY_CLASS, ObjectKind.PERSISTENT_VOLUME, ObjectKind.RUNTIME_CLASS)


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Reference to an object of a pod's namespace, or to none."""

    kind: ObjectKind
    name: str

    def key_in(self, namespace: str) -> ObjectKey:
        """The object that a pod of that namespace means."""
        return ObjectKey(self.kind, namespace if self.kind.is_namespaced else "", self.name)


class ObjectKey(msgspec.Struct, frozen=True, order=True):
    """Reference to an object of any namespace."""

    kind: ObjectKind
    namespace: str
    """Empty for a kind that has none."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


ConfigObject = ConfigMap | Secret | PriorityClass | RuntimeClass | PersistentVolume | PersistentVolumeClaim


def object_key(found: ConfigObject) -> ObjectKey:
    """The key of an object whose namespace is filled in, where its kind has one."""
    return ObjectKey(ObjectKind(found.kind), found.metadata.namespace, found.metadata.name)


class ConfigObjects(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """ConfigMaps, Secrets and claims that exist, by name."""

    config_maps: Mapping[str, ConfigMap] = msgspec.field(default_factory=dict)
    secrets: Mapping[str, Secret] = msgspec.field(default_factory=dict)
    claims: Mapping[str, PodClaim] = msgspec.field(default_factory=dict)
    """Claims that have documents."""
    runtime_classes: Mapping[str, RuntimeClass] = msgspec.field(default_factory=dict)
    cluster: ClusterValues | None = None
    """Values that a cluster gives to the pod beside objects; None for a pod that is not of one."""
    unknown: frozenset[ObjectRef] = frozenset()
    """Objects of which nothing is known now, not even that they do not exist: their source was not read yet, or their
    file cannot be read since the agent was restarted, or all that the pod refers to is too large to be sent. Containers
    and files made of them stay as they are, and a container that needs one waits for it, also where it is optional."""

    def is_unknown(self, kind: ObjectKind, name: str) -> bool:
        """Whether nothing must be concluded from its absence here."""
        return ObjectRef(kind, name) in self.unknown


def referenced_objects(pod: Pod) -> frozenset[ObjectRef]:
    """Everything that a pod refers to, optional or not (VisitPodConfigmapNames and VisitPodSecretNames,
    pkg/api/v1/pod/util.go), claims too, but for a cluster's (`ipc.k8s.podobjects.pod_claims`)."""
    is_document = not is_api_pod(pod)
    return frozenset(
        ref
        for refs in (
            (_secret(secret.name) for secret in pod.spec.image_pull_secrets),
            (ObjectRef(ObjectKind.RUNTIME_CLASS, pod.spec.runtime_class_name or ""),),
            *(_of_container(found.container) for found in every_container(pod.spec)),
            *map(_of_volume, pod.spec.volumes),
        )
        for ref in refs
        if ref.name and (is_document or ref.kind is not ObjectKind.PERSISTENT_VOLUME_CLAIM)
    )


def _of_container(container: Container) -> Iterator[ObjectRef]:
    for source in container.env_from:
        if source.config_map_ref is not None:
            yield _config_map(source.config_map_ref.name)
        if source.secret_ref is not None:
            yield _secret(source.secret_ref.name)
    for variable in container.env:
        value_from = variable.value_from
        if value_from is not None and value_from.config_map_key_ref is not None:
            yield _config_map(value_from.config_map_key_ref.name)
        if value_from is not None and value_from.secret_key_ref is not None:
            yield _secret(value_from.secret_key_ref.name)


def _of_volume(volume: Volume) -> Iterator[ObjectRef]:
    if volume.config_map is not None:
        yield _config_map(volume.config_map.name)
    if volume.secret is not None:
        yield _secret(volume.secret.secret_name)
    if volume.persistent_volume_claim is not None:
        yield ObjectRef(ObjectKind.PERSISTENT_VOLUME_CLAIM, volume.persistent_volume_claim.claim_name)
    if volume.projected is not None:
        for source in volume.projected.sources:
            yield from _of_projection(source)


def _of_projection(source: VolumeProjection) -> Iterator[ObjectRef]:
    if source.config_map is not None:
        yield _config_map(source.config_map.name)
    if source.secret is not None:
        yield _secret(source.secret.name)


def _config_map(name: str) -> ObjectRef:
    return ObjectRef(ObjectKind.CONFIG_MAP, name)


def _secret(name: str) -> ObjectRef:
    return ObjectRef(ObjectKind.SECRET, name)
