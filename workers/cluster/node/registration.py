"""Registration of the node (kubelet_node_status.go, registerWithAPIServer): made, or found and brought in line."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff
from workers.cluster.node.patch import node_patch
from workers.cluster.node.reconcile import reconciled
from workers.cluster.node.types import ClusterNode, decode_node, encode_node
from workers.kubeclient.errors import ApiError, ClusterError
from workers.kubeclient.protocol import STRATEGIC_MERGE_PATCH, Client
from workers.kubeclient.resources import NODES

TRIES: Final = Backoff(0.1, 7.0)

_log: Final = logging.getLogger(__name__)


async def register(client: Client, make: Callable[[], Awaitable[ClusterNode]]) -> None:
    """Try until the server has the Node. ``make`` gives the Node as it would be made now."""
    for failures in itertools.count(1):
        node, pause_s = await make(), TRIES.pause_s(failures)
        try:
            await try_register(client, node)
        except (ClusterError, ValueError) as error:
            _log.warning("node %s is not registered, trying again in %.1f s: %s", node.metadata.name, pause_s, error)
        else:
            _log.info("node %s is registered", node.metadata.name)
            return
        await asyncio.sleep(pause_s)


async def try_register(client: Client, node: ClusterNode) -> None:
    """Make the Node; one that is there, or that may not be made by us, is patched where it differs from what it has to
    be. Raises ClusterError, and ValueError for an answer that is no Node."""
    try:
        decode_node(await client.request("POST", NODES.path(), body=encode_node(node)), node.metadata.name)
    except ApiError as error:
        if not (error.already_exists or error.is_forbidden):
            raise
    else:
        return
    path = NODES.path(name=node.metadata.name)
    existing = decode_node(await client.request("GET", path), node.metadata.name)
    if patch := node_patch(existing, reconciled(node, existing)):
        answer = await client.request(
            "PATCH", f"{path}/status", body=msgspec.json.encode(patch), content_type=STRATEGIC_MERGE_PATCH
        )
        decode_node(answer, node.metadata.name)
