"""Kubeconfigs as kubeadm writes them (kubeadm util/kubeconfig, kubeconfig.go) and as the kubelet does after its
bootstrap (pkg/kubelet/certificate/bootstrap, writeKubeconfigFromBootstrapping)."""

from __future__ import annotations

import base64
from typing import Final

import yaml

from ipc.k8s.kubeconfig.types import ClusterAccess

DEFAULT_CLUSTER: Final = "kubernetes"
BOOTSTRAP_USER: Final = "tls-bootstrap-token-user"
DEFAULT_AUTH: Final = "default-auth"
DEFAULT_CONTEXT: Final = "default-context"


def encode_bootstrap_kubeconfig(server: str, ca_pem: bytes, token: str) -> bytes:
    """Kubeconfig of a bootstrap token: ``bootstrap-kubelet.conf`` (kubeadm CreateWithToken)."""
    cluster: dict[str, str | bool] = {"server": server}
    if ca_pem:
        cluster = {"certificate-authority-data": base64.b64encode(ca_pem).decode(), **cluster}
    return _file(cluster, DEFAULT_CLUSTER, BOOTSTRAP_USER, {"token": token}, f"{BOOTSTRAP_USER}@{DEFAULT_CLUSTER}")


def encode_node_kubeconfig(
    access: ClusterAccess, certificate_file: str, cluster_name: str = "default-cluster"
) -> bytes:
    """Kubeconfig of a node that has its certificate: ``kubelet.conf``. Certificate and key are in one file that is
    replaced at each rotation; the cluster is that of the bootstrap kubeconfig."""
    cluster: dict[str, str | bool] = {}
    if access.ca_pem:
        cluster["certificate-authority-data"] = base64.b64encode(access.ca_pem).decode()
    if access.ca_file:
        cluster["certificate-authority"] = access.ca_file
    if access.insecure_skip_tls_verify:
        cluster["insecure-skip-tls-verify"] = True
    if access.tls_server_name:
        cluster["tls-server-name"] = access.tls_server_name
    cluster["server"] = access.server
    user = {"client-certificate": certificate_file, "client-key": certificate_file}
    return _file(cluster, cluster_name, DEFAULT_AUTH, user, DEFAULT_CONTEXT)


def _file(
    cluster: dict[str, str | bool], cluster_name: str, user_name: str, user: dict[str, str], context: str
) -> bytes:
    document = {
        "apiVersion": "v1",
        "clusters": [{"cluster": cluster, "name": cluster_name}],
        "contexts": [{"context": {"cluster": cluster_name, "user": user_name}, "name": context}],
        "current-context": context,
        "kind": "Config",
        "users": [{"name": user_name, "user": user}],
    }
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=False, width=1 << 20).encode()
