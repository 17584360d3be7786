"""The strategic merge patch that makes of one Node another one (component-helpers/node/util, PatchNodeStatus). Pure.

Conditions merge by their type. Addresses would too, which loses one of two of the same type, so their list is replaced
by a marker within it. All other lists are replaced, as upstream's types say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from workers.cluster.node.types import ClusterNode

Json = Any


def node_patch(before: ClusterNode, after: ClusterNode) -> dict[str, Json]:
    """Changes of labels, annotations and status; empty when there is none. The spec is never changed."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    metadata = _changes(_named(old["metadata"]), _named(new["metadata"]))
    status = _status_changes(old.get("status", {}), new.get("status", {}))
    parts = {"metadata": metadata, "status": status}
    return {name: changes for name, changes in parts.items() if changes}


def _named(metadata: Mapping[str, Json]) -> Mapping[str, Json]:
    return {name: metadata.get(name, {}) for name in ("labels", "annotations")}


def _status_changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    special = ("conditions", "addresses")
    changes = _changes(
        {name: value for name, value in old.items() if name not in special},
        {name: value for name, value in new.items() if name not in special},
    )
    conditions = _changed_conditions(old.get("conditions", []), new.get("conditions", []))
    if conditions:
        changes["$setElementOrder/conditions"] = [{"type": each["type"]} for each in new["conditions"]]
        changes["conditions"] = conditions
    if (addresses := new.get("addresses", [])) != old.get("addresses", []):
        changes["addresses"] = [*addresses, {"$patch": "replace"}]
    return changes


def _changed_conditions(old: Sequence[Mapping[str, Json]], new: Sequence[Mapping[str, Json]]) -> list[Json]:
    before = {each["type"]: each for each in old}
    changed = [
        {**changes, "type": each["type"]} for each in new if (changes := _changes(before.get(each["type"], {}), each))
    ]
    gone = set(before) - {each["type"] for each in new}
    return [*changed, *({"$patch": "delete", "type": kind} for kind in sorted(gone))]


def _changes(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    """A member that is gone is null; of mappings their changes, everything else as a whole."""
    changes: dict[str, Json] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if below := _changes(before, value):
                changes[name] = below
        elif value != before:
            changes[name] = value
    return changes
