"""Kubernetes' own defaults, as the API server fills them in.

Source: pkg/apis/core/v1/defaults.go (each SetDefaults_ function is a row or a rule below), the `+default` markers of
core/v1/types.go, and Convert_v1_PodSpec_To_core_PodSpec for the two service account names. Addresses lose their leading
zeros here, which upstream passes on: Podman refuses them, and C libraries take them for octal numbers.
"""

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
import msgspec.structs

from ipc.host.text.ip_address import without_leading_zeros
from ipc.k8s.api.default_resources import default_pod_resources, requests_from_limits
from ipc.k8s.api.image import DEFAULT_TAG, parse_image_name
from ipc.k8s.api.quantity import QuantityError, canonical_quantity, round_up_to_milli
from ipc.k8s.api.schema import IS_SET, Kind, Shape, StructField, attribute_values, shape_of, struct_fields
from ipc.k8s.api.v1.base import Quantity, ResourceList
from ipc.k8s.api.v1.config_objects import OPAQUE, Secret
from ipc.k8s.api.v1.container import Container, ContainerPort, EphemeralContainer, PullPolicy
from ipc.k8s.api.v1.env import FileKeySelector, ObjectFieldSelector
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from ipc.k8s.api.v1.pod import HostAlias, Pod, PodDNSConfig, PodSpec
from ipc.k8s.api.v1.probe import GRPCAction, HTTPGetAction, Probe
from ipc.k8s.api.v1.projected import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeSource,
    ProjectedVolumeSource,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
)
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.api.v1.security import PodSecurityContext
from ipc.k8s.api.v1.volume import (
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimSpec,
    Volume,
    VolumeSource,
)
from ipc.k8s.api.v1.volume_attached import (
    AzureDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
)

DEFAULT_NAMESPACE: Final = "default"
DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS: Final = 30
DEFAULT_TERMINATION_MESSAGE_PATH: Final = "/dev/termination-log"
DEFAULT_FILE_MODE: Final = 0o644
DEFAULT_TOKEN_EXPIRATION_SECONDS: Final = 3600

_T = TypeVar("_T", bound=msgspec.Struct)

_QUANTITY: Final[Shape] = shape_of(Quantity)
_RESOURCE_LIST: Final[Shape] = shape_of(ResourceList)
_CONTAINER_VALUES: Final[Mapping[str, object]] = {
    "termination_message_path": DEFAULT_TERMINATION_MESSAGE_PATH,
    "termination_message_policy": "File",
}
_VALUES: Final[Mapping[type[msgspec.Struct], Mapping[str, object]]] = {
    PodSpec: {
        "dns_policy": "ClusterFirst",
        "restart_policy": "Always",
        "security_context": PodSecurityContext(),
        "termination_grace_period_seconds": DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS,
        "scheduler_name": "default-scheduler",
        "enable_service_links": True,
    },
    Container: _CONTAINER_VALUES,
    EphemeralContainer: _CONTAINER_VALUES,
    ContainerPort: {"protocol": "TCP"},
    Probe: {"timeout_seconds": 1, "period_seconds": 10, "success_threshold": 1, "failure_threshold": 3},
    HTTPGetAction: {"path": "/", "scheme": "HTTP"},
    GRPCAction: {"service": ""},
    ObjectFieldSelector: {"api_version": "v1"},
    FileKeySelector: {"optional": False},
    HostPathVolumeSource: {"type": ""},
    SecretVolumeSource: {"default_mode": DEFAULT_FILE_MODE},
    ConfigMapVolumeSource: {"default_mode": DEFAULT_FILE_MODE},
    DownwardAPIVolumeSource: {"default_mode": DEFAULT_FILE_MODE},
    ProjectedVolumeSource: {"default_mode": DEFAULT_FILE_MODE},
    ServiceAccountTokenProjection: {"expiration_seconds": DEFAULT_TOKEN_EXPIRATION_SECONDS},
    PersistentVolumeClaimSpec: {"volume_mode": "Filesystem"},
    PersistentVolumeSpec: {"persistent_volume_reclaim_policy": "Retain", "volume_mode": "Filesystem"},
    ISCSIVolumeSource: {"iscsi_interface": "default"},
    RBDVolumeSource: {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    ScaleIOVolumeSource: {"storage_mode": "ThinProvisioned", "fs_type": "xfs"},
    AzureDiskVolumeSource: {"caching_mode": "ReadWrite", "fs_type": "ext4", "read_only": False, "kind": "Shared"},
}
"""Default values by type and field, for a field that was left at its zero value."""


def default_pod(pod: Pod) -> Pod:
    """The pod with every default filled in and every quantity a text in canonical form; doing it twice changes nothing.

    `metadata.namespace` becomes DEFAULT_NAMESPACE, which in a cluster the request's URL would say. Quantities that
    cannot be parsed stay as they are, for `validate_pod` to report.
    """
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    spec = _defaulted(pod.spec)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, namespace=namespace), spec=spec)


def default_secret(secret: Secret) -> Secret:
    """The Secret with its type filled in (SetDefaults_Secret)."""
    return msgspec.structs.replace(secret, type=secret.type or OPAQUE)


def default_persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    """The volume with every default filled in (SetDefaults_PersistentVolume)."""
    return _defaulted(volume)


def default_persistent_volume_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim with every default filled in (SetDefaults_PersistentVolumeClaim)."""
    return _defaulted(claim)


def default_runtime_class(found: RuntimeClass) -> RuntimeClass:
    """The class with its overhead in canonical form."""
    return _defaulted(found)


def image_pull_policy(image: str) -> PullPolicy:
    """The policy of an image whose container names none: Always for the tag `latest`, written or implied.

    A name that cannot be parsed gets IfNotPresent, as upstream.
    """
    name = parse_image_name(image)
    return "Always" if name is not None and name.tag == DEFAULT_TAG else "IfNotPresent"


def _defaulted(struct: _T) -> _T:
    """The struct with its own and all inner defaults, inner ones first; itself if it has them all."""
    kind = type(struct)
    values = _VALUES.get(kind, {})
    filled: dict[str, Any] = {}
    found = _values_of(kind)(struct)
    pairs = zip(_fields_with_defaults(kind), found, strict=True)
    for field, value in pairs if values else itertools.compress(pairs, map(IS_SET, found)):
        use_default = field.attribute in values and value == field.default
        with_default = values[field.attribute] if use_default else _with_defaults_within(field, value)
        if with_default is not value:
            filled[field.attribute] = with_default
    result = msgspec.structs.replace(struct, **filled) if filled else struct
    rule = _RULES.get(kind)
    return rule(result) if rule else result


@functools.cache  # there are as many as types
def _fields_with_defaults(kind: type[msgspec.Struct]) -> tuple[StructField, ...]:
    """Fields that have a default value, a canonical form, or structs in them."""
    values = _VALUES.get(kind, {})
    return tuple(
        field
        for field in struct_fields(kind).values()
        if field.attribute in values or field.shape in (_QUANTITY, _RESOURCE_LIST) or _has_structs(field)
    )


@functools.cache
def _values_of(kind: type[msgspec.Struct]) -> Callable[[object], tuple[Any, ...]]:
    """Reads these fields."""
    return attribute_values(tuple(field.attribute for field in _fields_with_defaults(kind)))


def _has_structs(field: StructField) -> bool:
    shape = field.shape
    while shape.kind is Kind.LIST:
        shape = shape_of(shape.inner)
    return shape.kind is Kind.STRUCT


def _with_defaults_within(field: StructField, value: Any) -> object:
    if field.shape == _RESOURCE_LIST:
        return {name: _written_by(round_up_to_milli, quantity) for name, quantity in value.items()} if value else value
    if field.shape == _QUANTITY:
        return value if value is None else _written_by(canonical_quantity, value)
    return _inner(value)


def _written_by(write: Callable[[Quantity], str], quantity: Quantity) -> Quantity:
    try:
        return write(quantity)
    except QuantityError:
        return quantity


def _inner(value: object) -> object:
    if isinstance(value, tuple):
        inner = tuple(map(_inner, value))
        return inner if any(new is not old for new, old in zip(inner, value, strict=True)) else value
    return _defaulted(value) if isinstance(value, msgspec.Struct) else value


def _container(container: Container) -> Container:
    policy = container.image_pull_policy or image_pull_policy(container.image)
    return msgspec.structs.replace(container, image_pull_policy=policy)


_SOURCES: Final = attribute_values(tuple(source.attribute for source in struct_fields(VolumeSource).values()))


def _volume(volume: Volume) -> Volume:
    sources = _SOURCES(volume)
    if sources.count(None) == len(sources):
        return msgspec.structs.replace(volume, empty_dir=EmptyDirVolumeSource())
    return volume


def _port(port: ContainerPort) -> ContainerPort:
    return msgspec.structs.replace(port, host_ip=without_leading_zeros(port.host_ip))


def _host_alias(alias: HostAlias) -> HostAlias:
    return msgspec.structs.replace(alias, ip=without_leading_zeros(alias.ip))


def _dns_config(config: PodDNSConfig) -> PodDNSConfig:
    return msgspec.structs.replace(config, nameservers=tuple(map(without_leading_zeros, config.nameservers)))


def _image_volume(source: ImageVolumeSource) -> ImageVolumeSource:
    return msgspec.structs.replace(source, pull_policy=source.pull_policy or image_pull_policy(source.reference))


def _pod_spec(spec: PodSpec) -> PodSpec:
    account = spec.service_account_name or spec.service_account
    return default_pod_resources(
        msgspec.structs.replace(
            spec,
            service_account_name=account,
            service_account=account,
            containers=tuple(_in_pod(container, spec.host_network) for container in spec.containers),
            init_containers=tuple(_in_pod(container, spec.host_network) for container in spec.init_containers),
        )
    )


def _in_pod(container: Container, host_network: bool) -> Container:
    """The container with the defaults that its pod decides: requests from limits, and its ports on the host's own
    network."""
    ports = tuple(map(_host_port, container.ports)) if host_network else container.ports
    return msgspec.structs.replace(container, resources=requests_from_limits(container.resources), ports=ports)


def _host_port(port: ContainerPort) -> ContainerPort:
    return msgspec.structs.replace(port, host_port=port.host_port or port.container_port)


_RULES: Final[Mapping[type[msgspec.Struct], Callable[[Any], Any]]] = {
    PodSpec: _pod_spec,
    Container: _container,
    EphemeralContainer: _container,
    ContainerPort: _port,
    HostAlias: _host_alias,
    PodDNSConfig: _dns_config,
    Volume: _volume,
    ImageVolumeSource: _image_volume,
}
"""Defaults that depend on more than the field itself; run on a struct whose inner ones are done."""
