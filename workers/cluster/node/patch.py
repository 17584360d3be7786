"""The strategic merge patch that makes of one Node another one (component-helpers/node/util, PatchNodeStatus). Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.nodestatus.node import NodeStatus
from ipc.k8s.patching.strategic_diff import two_way_patch
from ipc.k8s.patching.strategic_merge import DIRECTIVE, REPLACE
from ipc.k8s.patching.strategic_schema import StructSchema
from workers.cluster.node.types import ClusterNode, NodeMeta

_METADATA: Final = StructSchema(NodeMeta)
_STATUS: Final = StructSchema(NodeStatus)


def node_patch(before: ClusterNode, after: ClusterNode) -> JsonObject:
    """Changes of labels, annotations and status; empty when there is none. The spec is never changed."""
    old, new = _as_json(before), _as_json(after)
    parts = {
        "metadata": two_way_patch(_named(old["metadata"]), _named(new["metadata"]), _METADATA),
        "status": _status_patch(old.get("status", {}), new.get("status", {})),
    }
    return {name: changes for name, changes in parts.items() if changes}


def _as_json(node: ClusterNode) -> JsonObject:
    found: JsonObject = msgspec.json.decode(msgspec.json.encode(node))
    return found


def _named(metadata: JsonObject) -> JsonObject:
    return {name: metadata.get(name, {}) for name in ("labels", "annotations")}


def _status_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Addresses would merge by their type, which loses one of two of the same type, so their list is replaced by a
    directive among its items (fixupPatchForNodeStatusAddresses)."""
    patch = two_way_patch(_without_addresses(old), _without_addresses(new), _STATUS)
    if (addresses := new.get("addresses", [])) != old.get("addresses", []):
        patch["addresses"] = [*addresses, {DIRECTIVE: REPLACE}]
    return patch


def _without_addresses(status: JsonObject) -> JsonObject:
    return {name: value for name, value in status.items() if name != "addresses"}
