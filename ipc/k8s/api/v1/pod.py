"""Pod and PodSpec."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Empty, Int32, Int64, ResourceList, always
from ipc.k8s.api.v1.container import Container, EphemeralContainer, ResourceRequirements
from ipc.k8s.api.v1.meta import LocalObjectReference, ObjectMeta
from ipc.k8s.api.v1.scheduling import (
    Affinity,
    PodReadinessGate,
    PodResourceClaim,
    PodSchedulingGate,
    PodSchedulingGroup,
    PreemptionPolicy,
    Toleration,
    TopologySpreadConstraint,
)
from ipc.k8s.api.v1.security import PodSecurityContext
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.api.v1.volume import Volume

RestartPolicy = Literal["Always", "OnFailure", "Never"]
DNSPolicy = Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
OSName = Literal["linux", "windows"]


class HostAlias(ApiStruct, frozen=True, kw_only=True):
    """One line of /etc/hosts."""

    ip: str
    hostnames: tuple[str, ...] = ()


class PodDNSConfigOption(ApiStruct, frozen=True, kw_only=True):
    """One resolver option."""

    name: str = ""
    value: str | None = None


class PodDNSConfig(ApiStruct, frozen=True, kw_only=True):
    """Additions to what `dns_policy` gives."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()


class PodOS(ApiStruct, frozen=True, kw_only=True):
    """The operating system the pod is written for."""

    name: OSName


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """v1 PodSpec. `termination_grace_period_seconds` and `active_deadline_seconds` are in seconds."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...]
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: RestartPolicy | Empty = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: DNSPolicy | Empty = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: PreemptionPolicy | None = None
    overhead: ResourceList = field(default_factory=dict)
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    set_hostname_as_fqdn: bool | None = None
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None


class Pod(ApiStruct, frozen=True, kw_only=True):
    """A v1 Pod. `status` is what Rootlet reports; a manifest's own status is dropped by `decode_pod`."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Pod"] = always("Pod")
    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = always(PodStatus())
