"""Files of the node's identity that the configuration need not name."""

from __future__ import annotations

from typing import Final

from supervisor.config.settings import Settings

PKI_DIR: Final = "pki"
"""Directory of certificates below ``stateDir``, as below the kubelet's root directory."""
KUBECONFIG: Final = "kubelet.conf"
"""Below ``stateDir``: kubeconfig of a node that bootstraps, unless another is set (kubeadm's name)."""
BOOTSTRAP_KUBECONFIG: Final = "bootstrap-kubelet.conf"
"""Below ``stateDir``: where `rootlet join` writes the kubeconfig of a bootstrap token (kubeadm's name)."""


def node_kubeconfig(settings: Settings) -> str:
    """Path of the kubeconfig that the node shows in its cluster, or will."""
    return settings.cluster.kubeconfig or str(settings.state_dir / KUBECONFIG)
