"""The section ``cluster:`` of the configuration: its rules, and what the node worker gets of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.k8s.api.v1.scheduling import Taint
from ipc.k8s.network.network_settings import BRIDGE
from ipc.k8s.nodestatus.node_ip import parse_node_ips, parse_socket_address
from ipc.link.wire.cluster_settings import ClusterSettings, NetworkScope
from supervisor.config.resolution.node_files import PKI_DIR, node_kubeconfig
from supervisor.config.settings import Settings, SettingsError

_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_OPEN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OPEN_LABELS: Final = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
"""Labels of Kubernetes' own domains that a node may give itself, beside those below ``_OPEN_DOMAINS``
(staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go, kubeletLabels and kubeletLabelNamespaces)."""


def check_cluster_section(settings: Settings, file: str) -> None:
    """Hold the section against its rules. Raises SettingsError."""
    for field, message in _problems(settings):
        raise SettingsError(file, field, message)


def _problems(settings: Settings) -> Iterator[tuple[str, str]]:
    """Find settings that mean nothing together with others."""
    cluster = settings.cluster
    if not cluster.is_configured:
        return
    if unknown := sorted(filter(_is_reserved, settings.node_labels)):
        yield "nodeLabels", f"{unknown[0]!r} is none of the kubernetes.io and k8s.io labels that a node gives itself"
    if cluster.register_with_taints and not cluster.register_node:
        yield "cluster.registerWithTaints", "taints are registered with registerNode only"
    pairs = [(taint.key, taint.effect) for taint in cluster.register_with_taints]
    if len(pairs) != len(set(pairs)):
        yield "cluster.registerWithTaints", "two taints have the same key and effect"
    if cluster.network_scope == "Cluster" and settings.pod_network.mode != BRIDGE:
        yield "cluster.networkScope", "Cluster needs podNetwork.mode bridge: no other pod is reached by its address"
    if cluster.kubeconfig and cluster.kubeconfig == cluster.bootstrap_kubeconfig:
        yield "cluster.kubeconfig", "is written with the node's own identity: bootstrapKubeconfig needs another file"


def _is_reserved(label: str) -> bool:
    """cmd/kubelet/app/options/options.go, ValidateKubeletFlags."""
    domain, slash, _ = label.partition("/")
    if not slash or label in _OPEN_LABELS or _is_below(domain, _OPEN_DOMAINS):
        return False
    return _is_below(domain, _RESERVED_DOMAINS)


def _is_below(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


def configured_node_ips(settings: Settings) -> tuple[str, ...]:
    """Addresses that the node has in its cluster; none: the host's."""
    return parse_node_ips(settings.cluster.node_ip) if settings.cluster.is_configured else ()


def kubernetes_service(settings: Settings) -> tuple[str, int] | None:
    """Address and port of the API server, where pods are told of another one than the cluster's service."""
    address = settings.cluster.kubernetes_service if settings.cluster.is_configured else ""
    return parse_socket_address(address) if address else None


def cluster_settings(settings: Settings) -> ClusterSettings | None:
    """The cluster's part of resolved settings; None without a cluster."""
    cluster = settings.cluster
    if not cluster.is_configured:
        return None
    return ClusterSettings(
        kubeconfig=node_kubeconfig(settings),
        bootstrap_kubeconfig=cluster.bootstrap_kubeconfig,
        pki_dir=str(settings.state_dir / PKI_DIR),
        rotate_certificates=cluster.rotate_certificates,
        server_tls_bootstrap=cluster.server_tls_bootstrap,
        register_node=cluster.register_node,
        taints=tuple(Taint(key=it.key, value=it.value, effect=it.effect) for it in cluster.register_with_taints),
        node_labels=dict(settings.node_labels),
        node_ips=configured_node_ips(settings),
        provider_id=cluster.provider_id,
        status_update_s=float(settings.node_status_update_frequency_s),
        status_report_s=float(cluster.node_status_report_frequency_s),
        lease_duration_s=cluster.node_lease_duration_seconds,
        api_qps=cluster.kube_api_qps,
        api_burst=cluster.kube_api_burst,
        event_qps=cluster.event_record_qps,
        event_burst=cluster.event_burst,
        network_scope=NetworkScope(cluster.network_scope),
        kubernetes_service=kubernetes_service(settings),
    )
