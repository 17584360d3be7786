"""The cluster that this host is a node of, as the process that speaks to it needs it."""

from __future__ import annotations

import enum

import msgspec

from ipc.k8s.api.v1.scheduling import Taint


class NetworkScope(enum.StrEnum):
    """How far the operator's network carries the traffic of pods: what the condition NetworkUnavailable says."""

    NODE = "Node"
    """Pods of this node reach each other, and whatever the host reaches; from other nodes nothing reaches them."""
    CLUSTER = "Cluster"
    """Pods of all nodes reach each other: the operator has seen to routes or an overlay."""
    NONE = "None"
    """Pods reach nobody: the node takes only those that tolerate it."""


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The section ``cluster:`` and what belongs to it. Durations in seconds."""

    kubeconfig: str
    """Path. With ``bootstrap_kubeconfig`` it is written there when the certificate has come."""
    bootstrap_kubeconfig: str = ""
    """Path; empty: the node has its identity already."""
    pki_dir: str
    """Directory of the certificates that the cluster signs."""
    rotate_certificates: bool = True
    server_tls_bootstrap: bool = False
    register_node: bool = True
    taints: tuple[Taint, ...] = ()
    """Taints of a node that registers for the first time."""
    node_labels: dict[str, str] = {}
    """Labels of a node that registers for the first time, beside those that the kubelet gives."""
    node_ips: tuple[str, ...] = ()
    """One address, or one of each family; none: the host's."""
    provider_id: str = ""
    status_update_s: float = 10.0
    status_report_s: float = 300.0
    lease_duration_s: int = 40
    api_qps: int = 50
    api_burst: int = 100
    event_qps: int = 50
    """0: no limit."""
    event_burst: int = 100
    network_scope: NetworkScope = NetworkScope.NODE
    kubernetes_service: tuple[str, int] | None = None
    """Address and port at which pods reach the API server; None: those of the service ``kubernetes``."""
