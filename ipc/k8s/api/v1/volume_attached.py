"""Volume sources that need a storage service outside the host: known by name and type, so refused by name."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Int32
from ipc.k8s.api.v1.meta import LocalObjectReference

AzureDataDiskCachingMode = Literal["None", "ReadOnly", "ReadWrite"]
AzureDataDiskKind = Literal["Shared", "Dedicated", "Managed"]


class GCEPersistentDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A GCE disk."""

    pd_name: str
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An EBS volume."""

    volume_id: str
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class NFSVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An NFS export."""

    server: str
    path: str
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An iSCSI LUN."""

    target_portal: str
    iqn: str
    lun: Int32
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Gluster volume."""

    endpoints: str
    path: str
    read_only: bool = False


class RBDVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Ceph block device."""

    monitors: tuple[str, ...]
    image: str
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlexVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A FlexVolume driver."""

    driver: str
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class CinderVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An OpenStack disk."""

    volume_id: str
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Ceph file system."""

    monitors: tuple[str, ...]
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlockerVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Flocker dataset."""

    dataset_name: str = ""
    dataset_uuid: str = ""


class FCVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Fibre Channel LUN."""

    target_wwns: tuple[str, ...] = ()
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: tuple[str, ...] = ()


class AzureFileVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An Azure file share."""

    secret_name: str
    share_name: str
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A vSphere disk."""

    volume_path: str
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = ""


class QuobyteVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Quobyte volume."""

    registry: str
    volume: str
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class AzureDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An Azure disk."""

    disk_name: str
    disk_uri: str
    caching_mode: AzureDataDiskCachingMode | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: AzureDataDiskKind | None = None


class PhotonPersistentDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Photon disk."""

    pd_id: str
    fs_type: str = ""


class PortworxVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A ScaleIO volume."""

    gateway: str
    system: str
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A StorageOS volume."""

    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An inline CSI volume."""

    driver: str
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: Mapping[str, str] = field(default_factory=dict)
    node_publish_secret_ref: LocalObjectReference | None = None
