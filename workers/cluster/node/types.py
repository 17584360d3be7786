"""The v1 Node as the API server has it: the parts that a node reads or sets of itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.k8s.nodestatus.node import NodeSpec, NodeStatus
from workers.cluster.node.nulls import without_nulls
from workers.kubeclient.errors import check_name

MAX_NODE_BYTES: Final = 3 << 20
"""Largest Node that is read: no object of an API server is larger."""


class NodeMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """ObjectMeta, without what nobody here reads."""

    name: str
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    deletion_timestamp: str = ""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The Node. Fields that are unknown here are left alone: changes are sent as patches."""

    kind: str = msgspec.field(default_factory=lambda: "Node")
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def decode_node(data: bytes, name: str) -> ClusterNode:
    """The Node of that name. Raises ValueError for what is no Node, or another one."""
    if len(data) > MAX_NODE_BYTES:
        raise ValueError(f"a Node of {len(data)} bytes")
    try:
        node = msgspec.convert(without_nulls(msgspec.json.decode(data)), ClusterNode)
    except RecursionError:
        raise ValueError("a Node that is nested too deeply") from None
    check_name(node.metadata.name, name)
    return node


def encode_node(node: ClusterNode) -> bytes:
    """JSON of the Node."""
    return msgspec.json.encode(node)
