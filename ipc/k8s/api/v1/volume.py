"""Volumes of a pod."""

from typing import Final, Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Empty, FilePath, ImageText, Int32, Quantity, ResourceList, always
from ipc.k8s.api.v1.container import PullPolicy
from ipc.k8s.api.v1.meta import LabelSelector, ObjectMeta, TypedLocalObjectReference, TypedObjectReference
from ipc.k8s.api.v1.projected import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeSource,
    ProjectedVolumeSource,
    SecretVolumeSource,
)
from ipc.k8s.api.v1.volume_attached import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)

HostPathType = Literal[
    "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"
]
PersistentVolumeAccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
PersistentVolumeMode = Literal["Filesystem", "Block"]


class HostPathVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A file or directory of the host."""

    path: FilePath
    type: HostPathType | None = None


MEMORY_MEDIUM: Final = "Memory"
"""The medium of an emptyDir that takes nothing of the disk."""


class EmptyDirVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A directory that lives as long as the pod."""

    medium: str = ""
    size_limit: Quantity | None = None
    mode: Int32 | None = None
    """Alpha in 1.37 (EmptyDirVolumeMode)."""


class GitRepoVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A clone (removed upstream; kept by name)."""

    repository: str
    revision: str = ""
    directory: str = ""


class PersistentVolumeClaimVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A claim in the pod's namespace."""

    claim_name: str
    read_only: bool = False


class VolumeResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """Storage requests and limits."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """Storage that a claim asks for."""

    access_modes: tuple[PersistentVolumeAccessMode, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = always(VolumeResourceRequirements())
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: PersistentVolumeMode | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(ApiStruct, frozen=True, kw_only=True):
    """The claim an ephemeral volume makes."""

    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeClaimSpec


class EphemeralVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A claim that lives as long as the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An OCI image as a read-only directory."""

    reference: ImageText = ""
    pull_policy: PullPolicy | Empty = ""


class VolumeSource(ApiStruct, frozen=True, kw_only=True):
    """Exactly one source."""

    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None


class Volume(VolumeSource, frozen=True, kw_only=True):
    """A named volume: its source is inherited."""

    name: str
