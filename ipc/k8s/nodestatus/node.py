"""The v1 Node, as far as this agent sets it (staging/src/k8s.io/api/core/v1/types.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.scheduling import Taint

NODE_READY: Final = "NodeReady"
NODE_NOT_READY: Final = "NodeNotReady"
"""Reasons of the events of the condition Ready (pkg/kubelet/events/event.go)."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base: what is not set is left out."""


class NodeCondition(_Shape, frozen=True, kw_only=True):
    """One condition. Times as RFC 3339."""

    type: str
    status: str
    last_heartbeat_time: str = ""
    last_transition_time: str = ""
    reason: str = ""
    message: str = ""


class NodeAddress(_Shape, frozen=True, kw_only=True):
    """An address of the node."""

    type: str
    address: str


class SwapInfo(_Shape, frozen=True, kw_only=True):
    """Swap space of the node, in bytes."""

    capacity: int | None = None


class NodeSystemInfo(_Shape, frozen=True, kw_only=True):
    """Identity and software of the node."""

    machine_id: str = msgspec.field(name="machineID", default="")
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    boot_id: str = msgspec.field(name="bootID", default="")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: SwapInfo | None = None
    running_in_user_namespace: bool | None = None
    """Whether root of a container is no root of the host (KubeletInUserNamespace)."""


class ContainerImage(_Shape, frozen=True, kw_only=True):
    """An image on the node."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class DaemonEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Port of a daemon on the node."""

    port: int = msgspec.field(name="Port")
    """Upstream's one field that begins with a capital."""


class NodeDaemonEndpoints(_Shape, frozen=True, kw_only=True):
    """Ports that the node serves."""

    kubelet_endpoint: DaemonEndpoint | None = None


class RuntimeHandlerFeatures(_Shape, frozen=True, kw_only=True):
    """Abilities of a runtime handler."""

    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class RuntimeHandler(_Shape, frozen=True, kw_only=True):
    """A handler that a RuntimeClass may name; the default one has no name."""

    name: str = msgspec.field(default_factory=str)
    features: RuntimeHandlerFeatures | None = None


class NodeFeatures(_Shape, frozen=True, kw_only=True):
    """Abilities of the runtime as a whole."""

    supplemental_groups_policy: bool | None = None


class NodeStatus(_Shape, frozen=True, kw_only=True):
    """Everything that is observed of the node."""

    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: NodeDaemonEndpoints = NodeDaemonEndpoints()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    runtime_handlers: tuple[RuntimeHandler, ...] = ()
    features: NodeFeatures | None = None
    declared_features: tuple[str, ...] = ()


class NodeSpec(_Shape, frozen=True, kw_only=True):
    """Wishes about the node."""

    unschedulable: bool = False
    """No pod is admitted."""
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")
    pod_cidrs: tuple[str, ...] = msgspec.field(name="podCIDRs", default=())


class Node(_Shape, frozen=True, kw_only=True):
    """The node."""

    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Node")
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus


class NodeEvent(msgspec.Struct, frozen=True):
    """An event about the node that a change of its status is the reason of."""

    type: str
    reason: str
    message: str = ""
