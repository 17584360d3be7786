"""The Node that is made at the registration (kubelet_node_status.go, initialNode). Pure."""

from __future__ import annotations

from typing import Final

from ipc.k8s.nodestatus.node import NodeSpec, NodeStatus
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.cluster.node.facts import NodeFacts, status_of
from workers.cluster.node.types import ClusterNode, NodeMeta

ATTACH_DETACH: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""Annotation: whoever attaches volumes, it is not this node."""
HOST_NAME: Final = "kubernetes.io/hostname"
OS: Final = "kubernetes.io/os"
ARCH: Final = "kubernetes.io/arch"
OLD_OS: Final = "beta.kubernetes.io/os"
OLD_ARCH: Final = "beta.kubernetes.io/arch"


def initial_node(facts: NodeFacts, settings: ClusterSettings, now: str) -> ClusterNode:
    """The Node with labels and taints of the configuration. ``now``: RFC 3339."""
    system, architecture = facts.host.operating_system, facts.host.architecture
    labels = {
        OLD_ARCH: architecture,
        OLD_OS: system,
        ARCH: architecture,
        HOST_NAME: facts.name,
        OS: system,
        **settings.node_labels,
    }
    return ClusterNode(
        metadata=NodeMeta(name=facts.name, labels=labels, annotations={ATTACH_DETACH: "true"}),
        spec=NodeSpec(taints=settings.taints, provider_id=settings.provider_id),
        status=status_of(NodeStatus(), facts, now),
    )
