"""Rows of objects beside pods (pkg/printers/internalversion/printers.go, printConfigMap, printSecret,
printPriorityClass, printRuntimeClass, printNamespace)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import since

Cells = Sequence[str | int | bool]

_PREEMPTION_POLICY: Final = "PreemptLowerPriority"


def config_map_row(found: Json, now: float) -> Cells:
    """Cells of a summary of a ConfigMap; ``now`` in epoch seconds."""
    meta = found["metadata"]
    return (meta.get("name", ""), found["keys"], since(meta.get("creationTimestamp"), now), *_summary(found))


def secret_row(found: Json, now: float) -> Cells:
    """Cells of a summary of a Secret; ``now`` in epoch seconds."""
    name, *rest = config_map_row(found, now)
    return (name, found["type"], *rest)


def priority_class_row(found: Json, now: float) -> Cells:
    """Cells of a PriorityClass; ``now`` in epoch seconds."""
    return (
        found["metadata"].get("name", ""),
        found["value"],
        found.get("globalDefault", False),
        since(found["metadata"].get("creationTimestamp"), now),
        found.get("preemptionPolicy", _PREEMPTION_POLICY),
    )


def runtime_class_row(found: Json, now: float) -> Cells:
    """Cells of a RuntimeClass; ``now`` in epoch seconds."""
    meta = found["metadata"]
    return meta.get("name", ""), found["handler"], since(meta.get("creationTimestamp"), now)


def namespace_row(found: Json, now: float) -> Cells:
    """Cells of a Namespace; ``now`` in epoch seconds."""
    meta = found["metadata"]
    return meta["name"], found["status"]["phase"], since(meta.get("creationTimestamp"), now)


def _summary(found: Json) -> Cells:
    return found.get("sizeBytes", ""), str(found.get("immutable", False)).lower(), found.get("source", "")
