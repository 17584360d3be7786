"""Environment variables of a container and where their values come from."""

from ipc.k8s.api.v1.base import ApiStruct, FilePath, Quantity
from ipc.k8s.api.v1.meta import LocalObjectReference


class ObjectFieldSelector(ApiStruct, frozen=True, kw_only=True):
    """A field of the pod itself (downward API)."""

    api_version: str = ""
    field_path: str


class ResourceFieldSelector(ApiStruct, frozen=True, kw_only=True):
    """A limit or request of a container (downward API)."""

    container_name: str = ""
    resource: str
    divisor: Quantity | None = None


class ConfigMapKeySelector(LocalObjectReference, frozen=True, kw_only=True):
    """One key of a ConfigMap."""

    key: str
    optional: bool | None = None


class SecretKeySelector(LocalObjectReference, frozen=True, kw_only=True):
    """One key of a Secret."""

    key: str
    optional: bool | None = None


class FileKeySelector(ApiStruct, frozen=True, kw_only=True):
    """One key of an env file in an emptyDir volume."""

    volume_name: str
    path: FilePath
    key: str
    optional: bool | None = None


class EnvVarSource(ApiStruct, frozen=True, kw_only=True):
    """Exactly one source of a value."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(ApiStruct, frozen=True, kw_only=True):
    """One variable: a literal `value` or a `value_from`."""

    name: str
    value: str = ""
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(LocalObjectReference, frozen=True, kw_only=True):
    """Every key of a ConfigMap."""

    optional: bool | None = None


class SecretEnvSource(LocalObjectReference, frozen=True, kw_only=True):
    """Every key of a Secret."""

    optional: bool | None = None


class EnvFromSource(ApiStruct, frozen=True, kw_only=True):
    """A set of variables with an optional name prefix."""

    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None
