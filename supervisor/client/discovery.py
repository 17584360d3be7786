"""A cluster's published kubeconfig: the ConfigMap ``cluster-info`` that everybody may read, vouched for by a signature
with a bootstrap token (kubeadm discovery/token, token.go). Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from supervisor.client.bootstrap_token import BootstrapToken, is_signed

CLUSTER_INFO_PATH: Final = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_KUBECONFIG: Final = "kubeconfig"
_SIGNATURE: Final = "jws-kubeconfig-"


class DiscoveryError(Exception):
    """A ConfigMap that nobody vouches for, or that is none."""


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


_DECODER: Final = msgspec.json.Decoder(_ConfigMap)


def signed_kubeconfig(config_map: bytes, token: BootstrapToken) -> bytes:
    """The kubeconfig in the ConfigMap's JSON. Raises DiscoveryError unless it is signed with the token."""
    try:
        data = _DECODER.decode(config_map).data or {}
    except UNDECODABLE:
        raise DiscoveryError("the answer is no ConfigMap cluster-info") from None
    text = data.get(_KUBECONFIG, "")
    signature = data.get(f"{_SIGNATURE}{token.id}", "")
    if not text:
        raise DiscoveryError("there is no kubeconfig in the cluster-info ConfigMap")
    if not signature:
        raise DiscoveryError(
            f"there is no JWS signed token in the cluster-info ConfigMap. This token id {token.id!r} is invalid for"
            " this cluster, can't connect"
        )
    if not is_signed(text.encode(), signature, token):
        raise DiscoveryError(
            "failed to verify JWS signature of received cluster info object, can't trust this API Server"
        )
    return text.encode()
