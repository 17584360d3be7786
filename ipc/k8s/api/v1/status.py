"""Pod status: what is reported. Times are RFC 3339 strings in whole seconds."""

from typing import Final, Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Empty, Int32, Int64, ResourceList, Time, always
from ipc.k8s.api.v1.container import RecursiveReadOnlyMode, ResourceRequirements

PodPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that run no more, for good."""
PodQOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]
PodResizeStatus = Literal["InProgress", "Deferred", "Infeasible"]
ConditionStatus = Literal["True", "False", "Unknown"]
ResourceHealthStatus = Literal["Healthy", "Unhealthy", "Unknown"]


class ContainerStateWaiting(ApiStruct, frozen=True, kw_only=True):
    """Not running yet, and why."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(ApiStruct, frozen=True, kw_only=True):
    """Running since."""

    started_at: Time | None = None


class ContainerStateTerminated(ApiStruct, frozen=True, kw_only=True):
    """Ended: how and when."""

    exit_code: Int32
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = ""


class ContainerState(ApiStruct, frozen=True, kw_only=True):
    """At most one of the three; none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(ApiStruct, frozen=True, kw_only=True):
    """The image behind an image volume."""

    image_ref: str = ""


class VolumeStatus(ApiStruct, frozen=True, kw_only=True):
    """Per source: what was mounted."""

    image: ImageVolumeStatus | None = None


class VolumeMountStatus(ApiStruct, frozen=True, kw_only=True):
    """A mount as it was made."""

    name: str
    mount_path: str
    read_only: bool = False
    recursive_read_only: RecursiveReadOnlyMode | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(ApiStruct, frozen=True, kw_only=True):
    """The identity of the first process."""

    uid: Int64
    gid: Int64
    supplemental_groups: tuple[Int64, ...] = ()


class ContainerUser(ApiStruct, frozen=True, kw_only=True):
    """The identity by platform."""

    linux: LinuxContainerUser | None = None


class ResourceHealth(ApiStruct, frozen=True, kw_only=True):
    """The health of one device."""

    resource_id: str
    health: ResourceHealthStatus | Empty = ""
    message: str | None = None


class ResourceStatus(ApiStruct, frozen=True, kw_only=True):
    """The health of a resource's devices."""

    name: str
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    """One container as observed."""

    name: str
    state: ContainerState = always(ContainerState())
    last_state: ContainerState = always(ContainerState())
    ready: bool = always(False)
    restart_count: Int32 = always(0)
    image: str = always("")
    image_id: str = always("")
    container_id: str = ""
    started: bool | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()
    user: ContainerUser | None = None
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    stop_signal: str | None = None


class PodCondition(ApiStruct, frozen=True, kw_only=True):
    """One condition."""

    type: str
    observed_generation: Int64 = 0
    status: ConditionStatus
    last_probe_time: Time | None = always(None)
    last_transition_time: Time | None = always(None)
    reason: str = ""
    message: str = ""


class HostIP(ApiStruct, frozen=True, kw_only=True):
    """An address of the host."""

    ip: str


class PodIP(ApiStruct, frozen=True, kw_only=True):
    """An address of the pod."""

    ip: str


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """A generated claim."""

    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """Request that backs an extended resource."""

    container_name: str
    resource_name: str
    request_name: str


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The claim made for extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...]
    resource_claim_name: str


class NodeAllocatableResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """A claim on the node's own resources."""

    resource_claim_name: str
    containers: tuple[str, ...] = ()
    resources: ResourceList


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """v1 PodStatus."""

    observed_generation: Int64 = 0
    phase: PodPhase | Empty = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = ""
    host_ips: tuple[HostIP, ...] = ()
    pod_ip: str = ""
    pod_ips: tuple[PodIP, ...] = ()
    start_time: Time | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: PodQOSClass | Empty = ""
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: PodResizeStatus | Empty = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
