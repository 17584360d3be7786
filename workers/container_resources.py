"""A container's share of the node, in libpod's words. Pure.

Mirrors generateLinuxContainerResources (pkg/kubelet/kuberuntime/kuberuntime_container_linux.go).
"""

from __future__ import annotations

from typing import Any

from ipc.api import Container, Pod
from ipc.node_resources import NodeResources


def container_resources(pod: Pod, container: Container, node: NodeResources) -> dict[str, Any]:
    """Fields of a SpecGenerator."""
    return {}
