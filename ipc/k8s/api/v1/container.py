"""Containers, their ports, mounts and restart rules."""

from typing import Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Empty, FilePath, ImageText, Int32, ResourceList, always
from ipc.k8s.api.v1.env import EnvFromSource, EnvVar
from ipc.k8s.api.v1.probe import Lifecycle, Probe
from ipc.k8s.api.v1.security import SecurityContext

ContainerRestartPolicy = Literal["Always", "OnFailure", "Never"]
ContainerRestartRuleAction = Literal["Restart", "RestartAllContainers"]
ContainerRestartRuleOnExitCodesOperator = Literal["In", "NotIn"]
Protocol = Literal["TCP", "UDP", "SCTP"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
TerminationMessagePolicy = Literal["File", "FallbackToLogsOnError"]
MountPropagationMode = Literal["None", "HostToContainer", "Bidirectional"]
RecursiveReadOnlyMode = Literal["Disabled", "IfPossible", "Enabled"]
ResourceResizeRestartPolicy = Literal["NotRequired", "RestartContainer"]


class ResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A container's use of one of the pod's claims."""

    name: str
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """Requests, limits and claims by resource name."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerResizePolicy(ApiStruct, frozen=True, kw_only=True):
    """Effect of a resize of one resource on the container."""

    resource_name: str
    restart_policy: ResourceResizeRestartPolicy


class ContainerPort(ApiStruct, frozen=True, kw_only=True):
    """A port; it is published on the host only when `host_port` is set."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32
    protocol: Protocol | Empty = ""
    host_ip: str = ""


class VolumeMount(ApiStruct, frozen=True, kw_only=True):
    """A volume of the pod at a path of the container."""

    name: str
    read_only: bool = False
    recursive_read_only: RecursiveReadOnlyMode | None = None
    mount_path: FilePath
    sub_path: FilePath = ""
    mount_propagation: MountPropagationMode | None = None
    sub_path_expr: FilePath = ""
    bind_mount_options: tuple[str, ...] = ()
    """Alpha in 1.37 (VolumeBindMountOptions)."""


class VolumeDevice(ApiStruct, frozen=True, kw_only=True):
    """A raw block volume at a device path."""

    name: str
    device_path: FilePath


class ContainerRestartRuleOnExitCodes(ApiStruct, frozen=True, kw_only=True):
    """A set of exit codes, or all but a set."""

    operator: ContainerRestartRuleOnExitCodesOperator | Empty = ""
    values: tuple[Int32, ...] = ()


class ContainerRestartRule(ApiStruct, frozen=True, kw_only=True):
    """Action to take when the exit code matches."""

    action: ContainerRestartRuleAction | Empty = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class Container(ApiStruct, frozen=True, kw_only=True):
    """A regular or init container."""

    name: str
    image: ImageText = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: FilePath = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = always(ResourceRequirements())
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: ContainerRestartPolicy | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: FilePath = ""
    termination_message_policy: TerminationMessagePolicy | Empty = ""
    image_pull_policy: PullPolicy | Empty = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container, frozen=True, kw_only=True):
    """A debugging container added to a running pod; the fields of Container and a target."""

    target_container_name: str = ""
