"""Settings of the node for volume plugins (VolumeHost, pkg/volume/plugins.go)."""

from __future__ import annotations

import msgspec

from ipc.k8s.podresources.node_resources import NodeResources
from workers.userns.unshare import DEFAULT, Unshare
from workers.volumemanager.plugins.back_off import MountBackOff


class VolumeHost(msgspec.Struct, frozen=True, kw_only=True):
    """Directories and settings of the node by which volumes are made."""

    pods_dir: str
    memory_dir: str = ""
    """As ``pods_dir``, for what must not reach a disk; empty when there is none."""
    instance: str
    """Label of Podman volumes that the agent makes."""
    node: NodeResources = NodeResources()
    unshare: Unshare = DEFAULT
    """Into Podman's user and mount namespaces."""
    back_off: MountBackOff = msgspec.field(default_factory=MountBackOff)
