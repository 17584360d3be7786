"""Facts that the agent knows of its node at one moment, and the status that follows from it (setters.go). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.nodestatus.conditions import FALSE, TRUE, set_condition, set_pressure, set_ready, with_conditions
from ipc.k8s.nodestatus.node import (
    NodeCondition,
    NodeFeatures,
    NodeStatus,
    RuntimeHandler,
    RuntimeHandlerFeatures,
)
from ipc.link.wire.cluster_settings import NetworkScope
from workers.nodestatus.addresses import daemon_endpoints, node_addresses
from workers.nodestatus.images import StoredImage, node_images
from workers.nodestatus.machine import NodeLimits, set_machine_info
from workers.nodestatus.version import HostVersions, set_versions
from workers.statsapi.machine_info import MachineInfo

RUNTIME: Final = "podman"
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
NETWORK_UNAVAILABLE: Final = "NetworkUnavailable"
WEB_SOCKETS: Final = "ExtendWebSocketsToKubelet"
"""The API server hands WebSockets on instead of speaking SPDY to the node."""
DECLARED: Final = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
_NETWORK: Final[Mapping[NetworkScope, NodeCondition]] = {
    NetworkScope.NODE: NodeCondition(
        type=NETWORK_UNAVAILABLE,
        status=FALSE,
        reason="PodNetworkOfThisNode",
        message="pods of this node reach each other and what the host reaches; pods of other nodes do not reach them",
    ),
    NetworkScope.NONE: NodeCondition(
        type=NETWORK_UNAVAILABLE,
        status=TRUE,
        reason="NoPodNetwork",
        message="the configuration says that pods of this node reach nobody",
    ),
}
"""The condition by the reach of the network. Of ``Cluster`` the node says nothing: who has made the routes may."""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Observations and settings that a Node's status is made of."""

    name: str
    host: HostVersions
    machine: MachineInfo | None
    """None: it could not be read."""
    limits: NodeLimits
    addresses: tuple[str, ...] | None
    """None: they stay as they are."""
    port: int
    """Port of the kubelet's server; 0: it is off."""
    runtime_version: str
    agent_version: str
    images: tuple[StoredImage, ...] = ()
    handlers: tuple[str, ...] = ()
    """Handlers that RuntimeClasses may name, beside the default one."""
    pressures: frozenset[str] = frozenset()
    """Types of the conditions of pressure that hold."""
    errors: tuple[str, ...] = ()
    """Why the node is not ready, in words."""
    network_scope: NetworkScope = NetworkScope.CLUSTER


def status_of(before: NodeStatus, facts: NodeFacts, now: str) -> NodeStatus:
    """The status that the API server had, with everything that this node tells of itself. ``now``: RFC 3339."""
    status = msgspec.structs.replace(
        before,
        addresses=before.addresses if facts.addresses is None else node_addresses(facts.addresses, facts.name),
        daemon_endpoints=daemon_endpoints(facts.port),
        images=node_images(facts.images),
        runtime_handlers=runtime_handlers(facts.handlers),
        features=NodeFeatures(supplemental_groups_policy=True),
        declared_features=declared_features(facts.port),
    )
    status, _ = set_machine_info(status, facts.machine, facts.limits, facts.name)
    status = set_versions(
        status,
        facts.host,
        runtime=RUNTIME,
        runtime_version=facts.runtime_version,
        kubelet_version=f"v{facts.agent_version}",
    )
    return with_conditions(status, _conditions(before.conditions, facts, status.capacity, now))


def _conditions(
    conditions: Sequence[NodeCondition], facts: NodeFacts, capacity: Mapping[str, str], now: str
) -> tuple[NodeCondition, ...]:
    """Events of changes are the master's, who sees each of them."""
    changed = tuple(conditions)
    if (network := _NETWORK.get(facts.network_scope)) is not None:
        changed = set_condition(changed, network, now)
    for kind in PRESSURES:
        changed, _ = set_pressure(changed, kind, pressure=kind in facts.pressures, now=now)
    changed, _ = set_ready(changed, errors=facts.errors, capacity=capacity, now=now)
    return changed


def runtime_handlers(names: Iterable[str]) -> tuple[RuntimeHandler, ...]:
    """The default handler, and those of the configuration, of which nobody knows what they can."""
    features = RuntimeHandlerFeatures(recursive_read_only_mounts=True, user_namespaces=True)
    return (RuntimeHandler(features=features), *(RuntimeHandler(name=name) for name in sorted(names)))


def declared_features(port: int) -> tuple[str, ...]:
    """Gates of the kubelet that the cluster asks about, of those that hold here
    (staging/src/k8s.io/component-helpers/nodedeclaredfeatures/features)."""
    return tuple(sorted((*DECLARED, *((WEB_SOCKETS,) if port else ()))))
