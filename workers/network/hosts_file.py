"""The text of a pod's /etc/hosts. Pure.

Mirrors managedHostsFileContent, nodeHostsFileContent and hostsEntriesFromHostAliases (pkg/kubelet/kubelet_pods.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ipc.k8s.api.v1.pod import HostAlias
from workers.network.hostnames import PodNames

_LOCAL: Final = (
    ("127.0.0.1", "localhost"),
    ("::1", "localhost ip6-localhost ip6-loopback"),
    ("fe00::0", "ip6-localnet"),
    ("fe00::0", "ip6-mcastprefix"),
    ("fe00::1", "ip6-allnodes"),
    ("fe00::2", "ip6-allrouters"),
)


_MASTER: Final = "kubernetes.default.svc"
"""The API server's service, as client libraries name it."""


def managed_hosts_file(ips: Iterable[str], names: PodNames, aliases: Sequence[HostAlias]) -> str:
    """Hosts file of a pod with a network of its own."""
    own = (names.fqdn, names.hostname) if names.domain else (names.hostname,)
    lines = [*_LOCAL, *((ip, *own) for ip in ips)]
    return "# Kubernetes-managed hosts file.\n" + _lines(lines) + _alias_entries(aliases)


def node_hosts_file(of_node: str, aliases: Sequence[HostAlias]) -> str:
    """Hosts file of a pod in the host's network; ``of_node`` is the host's own file."""
    return "# Kubernetes-managed hosts file (host network).\n" + of_node + _alias_entries(aliases)


def api_server_entry(ip: str, cluster_domain: str) -> str:
    """Names of a cluster's API server at the address that the operator says, which no name server would give; after all
    other entries, so that an alias of the pod's counts more. Not upstream's: there a DNS server answers, and kube-proxy
    forwards."""
    names = (_MASTER, "kubernetes.default", "kubernetes", *((f"{_MASTER}.{cluster_domain}",) if cluster_domain else ()))
    return "\n# Entry added by cluster.kubernetesService.\n" + _lines([(ip, *names)])


def _alias_entries(aliases: Sequence[HostAlias]) -> str:
    if not aliases:
        return ""
    return "\n# Entries added by HostAliases.\n" + _lines((alias.ip, *alias.hostnames) for alias in aliases)


def _lines(entries: Iterable[Iterable[str]]) -> str:
    return "".join("\t".join(entry) + "\n" for entry in entries)
