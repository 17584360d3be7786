"""Configured settings of pods' networks and names, for the code that makes sandboxes."""

from __future__ import annotations

from typing import Final

import msgspec

HOSTS_RESOLV_CONF: Final = "/etc/resolv.conf"
"""Default of ``resolvConf`` (pkg/kubelet/apis/config/v1beta1/defaults.go)."""
BRIDGE: Final = "bridge"


class NetworkSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """KubeletConfiguration's names where it has them."""

    mode: str = ""
    """Podman's name of a network mode for pods; empty leaves the choice to Podman."""
    bridge: str = ""
    """In mode BRIDGE: the Podman network that all pods share; empty means Podman's default one."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: str = HOSTS_RESOLV_CONF
    """The file that ``dnsPolicy: Default`` goes by; empty means no name servers at all."""
    kubernetes_service_ip: str = ""
    """Where pods of a cluster find its API server in place of its service; empty where they do by that."""
