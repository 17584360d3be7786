"""Files that volumes project: keys of objects, pod fields, tokens, certificates. Modes are permission bits."""

from collections.abc import Mapping

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, FilePath, Int32, Int64
from ipc.k8s.api.v1.env import ObjectFieldSelector, ResourceFieldSelector
from ipc.k8s.api.v1.meta import LabelSelector, LocalObjectReference


class KeyToPath(ApiStruct, frozen=True, kw_only=True):
    """One key as a file below the mount."""

    key: str
    path: FilePath
    mode: Int32 | None = None
    user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class DownwardAPIVolumeFile(ApiStruct, frozen=True, kw_only=True):
    """One pod field or resource as a file."""

    path: FilePath
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None
    user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class SecretProjection(LocalObjectReference, frozen=True, kw_only=True):
    """Keys of a Secret."""

    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class ConfigMapProjection(LocalObjectReference, frozen=True, kw_only=True):
    """Keys of a ConfigMap."""

    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIProjection(ApiStruct, frozen=True, kw_only=True):
    """Pod fields."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()


class ServiceAccountTokenProjection(ApiStruct, frozen=True, kw_only=True):
    """A token; `expiration_seconds` in seconds."""

    audience: str = ""
    expiration_seconds: Int64 | None = None
    path: FilePath
    user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class ClusterTrustBundleProjection(ApiStruct, frozen=True, kw_only=True):
    """Trust anchors."""

    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: FilePath
    user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class PodCertificateProjection(ApiStruct, frozen=True, kw_only=True):
    """A key pair and its certificate; `max_expiration_seconds` in seconds."""

    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: FilePath = ""
    key_path: FilePath = ""
    certificate_chain_path: FilePath = ""
    user_annotations: Mapping[str, str] = field(default_factory=dict)
    user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class VolumeProjection(ApiStruct, frozen=True, kw_only=True):
    """Exactly one source of a projected volume."""

    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class SecretVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class ConfigMapVolumeSource(LocalObjectReference, frozen=True, kw_only=True):
    """A ConfigMap as files."""

    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class DownwardAPIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """Pod fields as files."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""


class ProjectedVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """Several sources in one directory."""

    sources: tuple[VolumeProjection, ...] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None
    """Alpha in 1.37 (AtomicWriteVolumeUserFields)."""
