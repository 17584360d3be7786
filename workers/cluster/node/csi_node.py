"""The CSINode of this host (pkg/volume/csi/nodeinfomanager, InitializeCSINodeWithAnnotation): without drivers, for none
runs here. Others look for it: a scheduler counts attached volumes by it, and volumes of the plugins that it names are
known to be CSI drivers' business, which only a driver on the node could mount.

Different on purpose: nothing waits for it, where a kubelet is not Ready before it is there.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from workers.cluster.node.types import ClusterNode
from workers.kubeclient.errors import ApiError, ClusterError, check_name
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector_state import Metadata
from workers.kubeclient.resources import CSI_NODES

MIGRATED_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_PLUGINS: Final = tuple(
    f"kubernetes.io/{name}"
    for name in ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume")
)
"""Volumes that their CSI drivers mount (pkg/volume/csi/csi_plugin.go, initializeCSINode's plugins of 1.36)."""


class _Named(msgspec.Struct, frozen=True):
    metadata: Metadata


_NAMED: Final = msgspec.json.Decoder(_Named)
_log: Final = logging.getLogger(__name__)


class CsiNodeController:
    """Sees to it, once in the life of this process, that the CSINode is there."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._is_there = False

    async def ensure(self, node: ClusterNode | None) -> None:
        """Make the CSINode of that Node unless there is one. Never fails: whoever calls tries again later."""
        if self._is_there or node is None:
            return
        try:
            await self._find_or_make(node)
        except (ClusterError, ValueError) as error:
            _log.warning("no CSINode of node %s: %s", node.metadata.name, error)
        else:
            self._is_there = True

    async def _find_or_make(self, node: ClusterNode) -> None:
        """Raises ClusterError, and ValueError for an answer that is not about it."""
        name = node.metadata.name
        try:
            _check(await self._client.request("GET", CSI_NODES.path(name=name)), name)
        except ApiError as error:
            if not error.is_not_found:
                raise
        else:
            return
        try:
            body = csi_node(name, node.metadata.uid)
            _check(await self._client.request("POST", CSI_NODES.path(), body=body), name)
        except ApiError as error:
            if not error.already_exists:
                raise


def _check(answer: bytes, name: str) -> None:
    """Raises ValueError for what is not about the CSINode of that name."""
    check_name(_NAMED.decode(answer).metadata.name, name)


def csi_node(name: str, uid: str) -> bytes:
    """The CSINode of a Node of that name and UID, which takes it along when it goes."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    metadata = {
        "name": name,
        "annotations": {MIGRATED_ANNOTATION: ",".join(MIGRATED_PLUGINS)},
        "ownerReferences": [owner],
    }
    made = {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": metadata, "spec": {"drivers": []}}
    return msgspec.json.encode(made)
