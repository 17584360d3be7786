"""Labels of this node, as far as pods may ask for them. Pure."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Final

from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.config.settings import Settings

OS_LABEL: Final = "kubernetes.io/os"
ARCH_LABEL: Final = "kubernetes.io/arch"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
HOST_OS: Final = "linux"
_GO_ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "amd64",
    "i386": "386",
    "i486": "386",
    "i586": "386",
    "i686": "386",
    "aarch64": "arm64",
    "armv6l": "arm",
    "armv7l": "arm",
    "armv8l": "arm",
    "loongarch64": "loong64",
}
"""Go's names (GOARCH) of what the kernel calls otherwise."""
HOST_ARCH: Final = _GO_ARCHITECTURES.get(platform.machine(), platform.machine())


def node_labels(settings: Settings, node: NodeResources) -> Mapping[str, str]:
    """Labels of the Node as the cluster has it (pkg/kubelet/kubelet_getters.go, getNodeAnyWay). Without a cluster, and
    before it has told: those that a kubelet gives its node (pkg/kubelet/kubelet_node_status.go, initialNode), and the
    configured ones, which count before them."""
    if node.labels is not None:
        return node.labels
    own = {HOSTNAME_LABEL: settings.node_name, OS_LABEL: HOST_OS, ARCH_LABEL: HOST_ARCH}
    return own | dict(settings.node_labels)
