"""Rows of nodes (pkg/printers/internalversion/printers.go, printNode)."""

from __future__ import annotations

from collections.abc import Sequence

from ipc.host.text.json_types import Json
from ipc.k8s.resources.node_roles import node_roles
from ipc.k8s.resources.times import NONE, UNKNOWN, since


def node_row(node: Json, now: float) -> Sequence[str]:
    """Cells of a node; ``now`` in epoch seconds."""
    meta, status = node["metadata"], node.get("status", {})
    info = status.get("nodeInfo", {})
    architecture = info.get("architecture")
    kernel = info.get("kernelVersion") or UNKNOWN
    return (
        meta.get("name", ""),
        _readiness(node),
        ",".join(node_roles(meta.get("labels", {}))) or NONE,
        since(meta.get("creationTimestamp"), now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    )


def _readiness(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    ready = next((c["status"] for c in conditions if c["type"] == "Ready"), "")
    readiness = {"": "Unknown", "True": "Ready"}.get(ready, "NotReady")
    return f"{readiness},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else readiness


def _address(status: Json, kind: str) -> str:
    return next((each["address"] for each in status.get("addresses", ()) if each["type"] == kind), NONE)
