"""PersistentVolume and PersistentVolumeClaim (core/v1): storage of the host, and what pods want of it."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, FilePath, ResourceList, always
from ipc.k8s.api.v1.meta import ObjectMeta, ObjectReference
from ipc.k8s.api.v1.scheduling import NodeSelector
from ipc.k8s.api.v1.volume import (
    HostPathVolumeSource,
    PersistentVolumeAccessMode,
    PersistentVolumeClaimSpec,
    PersistentVolumeMode,
)

RefusedSource: TypeAlias = Any
"""Source of a kind that is refused: nothing in it is looked at."""
PersistentVolumeReclaimPolicy = Literal["Retain", "Delete", "Recycle"]


class LocalVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A directory of the host that is there."""

    path: FilePath
    fs_type: str | None = None


class CSIPersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume of a driver; the agent makes these for volumes that it has provisioned."""

    driver: str
    volume_handle: str
    volume_attributes: Mapping[str, str] = field(default_factory=dict)


class PersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """Exactly one source. All but the first three are known by name alone, to be refused by it."""

    host_path: HostPathVolumeSource | None = None
    local: LocalVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    aws_elastic_block_store: RefusedSource = None
    azure_disk: RefusedSource = None
    azure_file: RefusedSource = None
    cephfs: RefusedSource = None
    cinder: RefusedSource = None
    fc: RefusedSource = None
    flex_volume: RefusedSource = None
    flocker: RefusedSource = None
    gce_persistent_disk: RefusedSource = None
    glusterfs: RefusedSource = None
    iscsi: RefusedSource = None
    nfs: RefusedSource = None
    photon_persistent_disk: RefusedSource = None
    portworx_volume: RefusedSource = None
    quobyte: RefusedSource = None
    rbd: RefusedSource = None
    scale_io: RefusedSource = None
    storageos: RefusedSource = None
    vsphere_volume: RefusedSource = None


class VolumeNodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """Nodes on which the volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(PersistentVolumeSource, frozen=True, kw_only=True):
    """A volume: its source is inherited."""

    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[PersistentVolumeAccessMode, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: PersistentVolumeReclaimPolicy | None = None
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: PersistentVolumeMode | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True, kw_only=True):
    """Phase of the volume."""

    phase: str = ""
    """Available, Bound, Released or Failed."""
    message: str = ""
    reason: str = ""


class PersistentVolume(ApiStruct, frozen=True, kw_only=True):
    """A piece of storage, of no namespace."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["PersistentVolume"] = always("PersistentVolume")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeSpec = always(PersistentVolumeSpec())
    status: PersistentVolumeStatus = always(PersistentVolumeStatus())


class PersistentVolumeClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Phase of the claim, and size and modes of its volume."""

    phase: str = ""
    """Pending, Bound or Lost."""
    access_modes: tuple[PersistentVolumeAccessMode, ...] = ()
    capacity: ResourceList = field(default_factory=dict)


class PersistentVolumeClaim(ApiStruct, frozen=True, kw_only=True):
    """A request for storage. Pods of its namespace mount the volume that it is bound to."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["PersistentVolumeClaim"] = always("PersistentVolumeClaim")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeClaimSpec = always(PersistentVolumeClaimSpec())
    status: PersistentVolumeClaimStatus = always(PersistentVolumeClaimStatus())
